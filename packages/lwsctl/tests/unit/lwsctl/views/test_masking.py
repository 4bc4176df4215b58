"""Tests that suspected secrets are removed from an episode, and that similar strings are preserved."""

import base64
import re
import time

import pytest

from kuberuntime.texts.masking import MASK, Mask, secret_values
from leaderworkerset.api.eventvalue import convert
from lwsctl.diagnosis import ranks


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter2", f"password={MASK}"),
        ('{"api_key": "abc123xyz", "rank": 1}', f'{{"api_key": "{MASK}", "rank": 1}}'),
        ("DB_PASSWORD: s3cr3t-thing", f"DB_PASSWORD: {MASK}"),
        ("hf.token = hf-thing", f"hf.token = {MASK}"),
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {MASK}"),
        ("GET postgres://me:pw@db/x", f"GET postgres://{MASK}@db/x"),
        ("key AKIAABCDEFGHIJKLMNOP used", f"key {MASK} used"),
        ("got hf_abcdefghijklmnopqrstuv", f"got {MASK}"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl end", f"jwt {MASK} end"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nnext", f"{MASK}\nnext"),
        ("-----BEGIN PRIVATE KEY-----\nabc and cut", MASK),
    ],
)
def test_known_forms_of_secrets_are_masked_and_counted(text: str, shown: str) -> None:
    mask = Mask()
    assert mask.text(text) == shown
    assert mask.count == 1


@pytest.mark.parametrize(
    "text",
    ["max_tokens=4096", "tokens: 512", "tokenizer=/models/llama", "token=17", "secret: None", "KeyError: 'rank'", ""],
)
def test_output_of_model_programs_is_kept(text: str) -> None:
    mask = Mask()
    assert mask.text(text) == text
    assert mask.count == 0


NAMED_FORMS = r"""
password=SECRET
PASSWORD: SECRET
{"password": "SECRET"}
{'password': 'SECRET and more'}
password = "SECRET \" quoted"
body={\"password\": \"SECRET y\"}
body={\\\"password\\\": \\\"SECRET\\\"}
--password SECRET
--password=SECRET
--password 'SECRET two'
["--api-key", "SECRET"]
args: --hf-token SECRET --port 80
PGPASSWORD=SECRET psql
MYSQL_PWD=SECRET
DB_PASS=SECRET
spring.datasource.password=SECRET
//registry.example.com/:_authToken=SECRET
Authorization: Basic U0VDUkVUU0VDUkVU
authorization: token SECRET
"Authorization": "ApiKey SECRET"
Proxy-Authorization: Digest username="a", response="SECRET"
curl -H "Authorization: Bearer SECRET"
bearer SECRETSECRET
Cookie: session=SECRET; a=b
Set-Cookie: sid=SECRET; Path=/
x-api-key: SECRET
redis://:SECRET@host:6379/0
postgres://me:SECRET@db/x
amqp://user:p%40SECRET@host
postgres://u:p@SECRET@host/db
postgres://u:SECRET/slash@host/db
https://SECRETSECRETSECRET@github.com/a
user:SECRET@tcp(db:3306)/app
Server=db;User Id=sa;Password=SECRET;Encrypt=no
Server=db;Uid=sa;Pwd=SECRET;
https://x.blob/y?sv=2020&sig=SECRET%3D&se=1
https://maps/api?key=SECRET&v=3
GET /cb?code=SECRET&state=1
https://s3/x?X-Amz-Signature=SECRET&X-Amz-Date=1
AccountKey=SECRET==;EndpointSuffix=core
aws_secret_access_key = SECRET/abc+def
"SecretAccessKey" : "SECRET"
name: DB_PASSWORD\n  value: SECRET
{"name":"API_TOKEN","value":"SECRET"}
password: |\n  SECRET
passphrase: correct SECRET battery
Config(password='SECRET y', user='b')
{'token': b'SECRET'}
password: Some("SECRET")
SecretKey: SecretStr('SECRET')
{User:me Password:SECRET Port:1}
map[string]string{"client_secret":"SECRET"}
<password>SECRET</password>
<apiKey type="x">SECRET</apiKey>
password%3DSECRET&user
export HF_TOKEN='SECRET y'
ALTER USER a WITH PASSWORD 'SECRET';
CREATE USER a IDENTIFIED BY 'SECRET'
machine host login me password SECRET
the password is SECRET
sshpass -p SECRET ssh a
docker login -u me -p SECRET reg
mysql -u root -pSECRET db
redis-cli -h x -a SECRET ping
curl -u me:SECRET http://x
"auth": "U0VDUkVUU0VDUkVU"
client-key-data: U0VDUkVUU0VDUkVU
privateKey="SECRET"
clientSecret: SECRET
access_key => "SECRET"
ENCRYPTION_KEY:=SECRET
password=ab,SECRET
password=ab"SECRET
jwt=SECRET
sessionid=SECRET
license_key: SECRET
os.environ['API_KEY'] = 'SECRET'
login bob pass: SECRET7x
user=bob pwd=SECRET7x
HUGGING_FACE_HUB_TOKEN SECRET7xSECRET7x
htpasswd -b users bob SECRET
kubectl create secret generic a --from-literal=key=SECRET
X-Amz-Signature=SECRET&x=1
SharedAccessSignature sr=a&sig=SECRET%3D
password:\n  SECRET
\x1b[31mpassword\x1b[0m=SECRET
""".strip().splitlines()
r"""Container output with `SECRET` in place of the value, also in base64. A line break is written as `\n`."""

SECRET = re.compile("SECRET|U0VDUkVU")

KEY_LINE = "MIIEowIBAAKCAQEA7bq2kq3xq0Zb8b0h2ElJtGd7mXv5Yx1kP0uRr5c3nJ8wQeTz"
"""A line of a private key that is not used."""

KEYS = {
    "whole": ["-----BEGIN RSA PRIVATE KEY-----", KEY_LINE, KEY_LINE, "-----END RSA PRIVATE KEY-----"],
    "end cut": ["-----BEGIN PRIVATE KEY-----", KEY_LINE, KEY_LINE[:9]],
    "begin cut": [KEY_LINE, KEY_LINE[:9], "-----END EC PRIVATE KEY-----"],
    "both cut": [KEY_LINE, KEY_LINE, KEY_LINE],
    "windows": ["-----BEGIN PRIVATE KEY-----\r", f"{KEY_LINE}\r", "-----END PRIVATE KEY-----\r"],
    "pgp": ["-----BEGIN PGP PRIVATE KEY BLOCK-----", "", KEY_LINE, "-----END PGP PRIVATE KEY BLOCK-----"],
    "indented": ["  -----BEGIN OPENSSH PRIVATE KEY-----", f"  {KEY_LINE}", "  -----END OPENSSH PRIVATE KEY-----"],
    "JSON": [rf'{{"key": "-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n-----END PRIVATE KEY-----\n"}}'],
    "base64": [f"LS0tLS1CRUdJTi{KEY_LINE}"],
}

PREFIXES = {
    "AKIA": 16, "ASIA": 16, "AIza": 35, "ya29.": 40, "GOCSPX-": 28, "abc8Q~": 34, "LTAI": 20, "IQoJ": 90, "ghp_": 36, "gho_": 36,
    "github_pat_": 40, "glpat-": 20, "glrt-": 20, "xoxb-": 30, "xapp-": 30, "https://hooks.slack.com/services/": 40, "sk_live_": 24,
    "rk_test_": 24, "whsec_": 32, "npm_": 36, "pypi-": 60, "dckr_pat_": 27, "hf_": 34, "api_org_": 34, "sk-": 48, "sk-ant-": 60,
    "gsk_": 52, "r8_": 37, "nvapi-": 64, "hvs.": 60, "glsa_": 40, "NRAK-": 27, "lin_api_": 40, "ATATT3": 80, "tskey-": 40, "dapi": 32,
    "$2b$12$": 53, "$6$": 86, "AGE-SECRET-KEY-1": 58, "123456789:AA": 33,
}  # fmt: skip
"""The prefixes of service keys and tokens, with the number of characters after them."""


def test_table_of_forms_is_long() -> None:
    assert len(NAMED_FORMS) + len(KEYS) + len(PREFIXES) >= 120


@pytest.mark.parametrize("form", NAMED_FORMS)
def test_named_value_is_masked(form: str) -> None:
    mask = Mask()
    text = mask.text(form.replace(r"\n", "\n").replace(r"\x1b", "\x1b"))
    assert not SECRET.search(text)
    assert mask.count >= 1
    assert MASK in text


@pytest.mark.parametrize("lines", KEYS.values(), ids=KEYS)
def test_private_key_over_lines_is_masked(lines: list[str]) -> None:
    found = Mask().lines([*lines, "after"])
    assert found[-1] == "after" or lines is KEYS["end cut"]
    assert KEY_LINE[:9] not in "".join(found)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_token_of_a_service_is_masked(prefix: str) -> None:
    body = ("A1B2C3D4E5F6G7H8I9J0" * 5)[: PREFIXES[prefix]]
    body = body.lower() if prefix == "dapi" else body
    text = Mask().text(f"request with {prefix}{body} failed")
    assert body not in text
    assert text.endswith(f"{MASK} failed")


HARMLESS = r"""
max_tokens=4096
tokens: 512
tokenizer=/models/llama
token=17
secret: None
KeyError: 'rank'
eos_token='</s>'
pad_token: <|endoftext|>
next token: the
time_per_token: 12ms
--max-tokens 100
--tokenizer-mode auto
--token-limit 5
secretName: tls-cert
password_file=/etc/pw
--password-file /etc/pw
secret "db" not found
couldn't find key password in Secret default/db
Unexpected token } in JSON at position 3
http://10.0.0.1:8080/path@v1
http://host:80 user@host
git@github.com:org/repo.git
invalid token: expired
password is incorrect
AssertionError: token_ids=[1, 2]
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
pass=3 fail=1
password authentication failed
password required for user u1
Password changed, 3 left
password must have 8 characters
next token hello2world
token 12 of 4096
token id 128000
generated token 17
access key not set
secret tls-cert-2 not found
key: value
monkey=1
OLDPWD=/root
PWD=/root
--token-type Bearer x
name: web
value: x
kubectl get secret web -o yaml
python -m x --seed 5 -p 80
NCCL INFO Channel 00/02 : 0 1
torch.Size([1, 2])
image@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
tcp://10.0.0.1:29500
password: $DB_PASSWORD
token: ${TOKEN}
auth: disabled
Bearer authentication failed
HF_TOKEN is missing
MAX_TOKEN 4096
pass: 3 of 5
pwd: /root/models/llama
""".strip().splitlines()


@pytest.mark.parametrize("text", HARMLESS)
def test_text_that_only_resembles_a_secret_is_kept(text: str) -> None:
    assert Mask().text(text) == text


def test_object_is_masked_in_variables_options_and_texts() -> None:
    container = {
        "env": [{"name": "DB_PASSWORD", "value": "one-value"}, {"name": "MODE", "value": "fast"}],
        "args": ["--api-key", "two-value", "--port", "80", "--token=three-value"],
        "envFrom": [{"secretRef": {"name": "tls"}}],
    }
    obj = {"metadata": {"annotations": {"note": "redis://:four-value@db"}}, "spec": {"containers": [container], "n": 1}}
    mask = Mask()
    assert mask.object(obj) == {
        "metadata": {"annotations": {"note": f"redis://{MASK}@db"}},
        "spec": {
            "containers": [
                {
                    "env": [{"name": "DB_PASSWORD", "value": MASK}, {"name": "MODE", "value": "fast"}],
                    "args": ["--api-key", MASK, "--port", "80", f"--token={MASK}"],
                    "envFrom": [{"secretRef": {"name": "tls"}}],
                }
            ],
            "n": 1,
        },
    }
    assert mask.count == 4
    assert mask.data({"password": "x-value", "conf": "a=b"}) == {"password": MASK, "conf": "a=b"}


PLAIN_WORDS = r"""
password hunter2
login with Password hunter2.
user bob passwd hunter2 was rejected
passphrase hunter2-rabbit
using token hunter2abcdefgh
api key hunter2abcdefgh
secret key hunter2/abcdefgh
""".strip().splitlines()


@pytest.mark.parametrize("text", PLAIN_WORDS)
def test_word_with_a_digit_after_a_plain_name_is_masked(text: str) -> None:
    shown = Mask().text(text)
    assert MASK in shown
    assert "hunter2" not in shown


def test_list_of_words_with_a_password_is_masked() -> None:
    words = ["login", "password", "hunter2", "password", "file"]
    assert Mask().object(words) == ["login", "password", MASK, "password", "file"]


def test_known_values_are_masked_in_plain_and_base64() -> None:
    secret = {"data": {"a": encoded("first-line\nsecond-line\n"), "b": encoded(b"\xff\xfe\x00\x01binary"), "c": "*"}}
    env = [{"name": "API_TOKEN", "value": "from-variable"}, {"name": "MODE", "value": "production"}, {"name": "TOKEN"}]
    pod = {
        "spec": {"containers": [{"env": env}], "initContainers": [{"env": [{"name": "PASSWORD", "value": "12345678"}]}]}
    }
    mask = Mask(secret_values([secret, {}], [pod, {}]))
    text = f"first-line second-line {secret['data']['a']} from-variable production 12345678"
    assert mask.text(text) == f"{MASK} {MASK} {MASK} {MASK} production {MASK}"
    assert mask.count == 5


def test_short_values_are_not_masked() -> None:
    assert Mask(["true", "8080", ""]).text("true at 8080") == "true at 8080"


def test_longer_value_is_masked_before_its_prefix() -> None:
    assert Mask(["abcdef", "abcdefghij"]).text("abcdefghij abcdef") == f"{MASK} {MASK}"


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a.",
            "eyJ-",
            "token",
            "password= ",
            "://",
            "-----BEGIN ",
            "x",
            "-",
            "--token ",
            "name: token\n",
            'password="',
            "://a:b",
        ),
        *(
            "-----BEGIN PRIVATE KEY-----",
            "Aa1" * 20 + "\n",
            "curl ",
            "mysql -",
            "<token ",
            "cookie:",
            "passphrase=",
            "\\\\",
            "a:",
            "\\'token",
            "password ",
            "token a1",
        ),
    ],
)
@pytest.mark.slow
def test_hostile_lines_are_masked_in_bounded_time(piece: str) -> None:
    began = time.process_time()
    Mask().text(piece * (8 * 1024 // len(piece)))
    assert time.process_time() - began < 2


def encoded(value: str | bytes) -> str:
    """Return a value as a Secret stores it."""
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def test_failures_and_events_are_masked() -> None:
    event = {
        "message": "Readiness probe failed: redis://:hunter2@db",
        "involvedObject": {"kind": "Pod", "name": "web-0"},
    }
    assert "hunter2" not in convert(event).message
    assert "hunter2" not in ranks.quote_message("connecting with\n--password hunter2")
