"""Tests that secrets in command lines and logs are masked, and that harmless strings are not."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kuberuntime.texts import secretpatterns
from kuberuntime.texts.masking import MASK, Mask
from kuberuntime.texts.secretpatterns import NAMED_VALUES, NamedValue, ValueForm

VALUE = "s3cretQ9x7"
"""The placeholder for a secret. `31415926` is a numeric secret."""

FORMS = r"""
/run/secrets/db_password: VALUE
/run/secrets/db_password:VALUE
{"/run/secrets/token": "VALUE"}
["--token","VALUE"]
['--hf-token','VALUE']
["--token", "VALUE"]
args: [--token, VALUE, --port, 80]
"args": ["serve", "--api-key", "VALUE", "--port", "80"]
- --api-key\n  - VALUE
"--token",\n  "VALUE"
password:     VALUE
password =      VALUE
API_KEY:\t\tVALUE
PASSWORD        :        VALUE
token | VALUE
| token | VALUE |
| hf_token    | VALUE            |
│ password │ VALUE │
token -> VALUE
token => VALUE
wandb login VALUE
wandb login --relogin VALUE
wandb login --host https://w.example.com VALUE
vault login VALUE
huggingface-cli login --token VALUE
huggingface-cli login --add-to-git-credential --token=VALUE
hf auth login --token VALUE
modelscope login --token VALUE
comet login --api-key VALUE
password=31415926
PASSWORD: 31415926
password=3141
api_key=314159265358979
token: 31415926535
password is 31415926
--password 31415926
"password": 31415926
vllm serve m --api-key VALUE
export WANDB_API_KEY=VALUE
set HF_TOKEN=VALUE
ENV HF_TOKEN=VALUE
docker run -e HF_TOKEN=VALUE img
docker login -u me --password VALUE reg
docker login -u me -pVALUE reg
echo VALUE | docker login -u me --password-stdin
aws configure set aws_secret_access_key VALUE
git clone https://me:VALUE@github.com/a/b
git clone https://oauth2:VALUE@gitlab.com/a
curl -H 'X-Auth-Token: VALUE' http://a
curl -H "PRIVATE-TOKEN: VALUE" http://a
curl --user me:VALUE http://a
wget --http-password VALUE http://a
pip install --index-url https://u:VALUE@pypi.example.com/simple
PGPASSWORD='VALUE' psql
mysqldump -uroot -pVALUE db
mongo -u me -p VALUE --authenticationDatabase admin
redis-cli --pass VALUE
sqlcmd -U sa -P VALUE
az login --service-principal -u a -p VALUE --tenant t
ldapsearch -w VALUE
openssl enc -k VALUE
openssl rsa -passin pass:VALUE
mc alias set m http://h KEY VALUE
rclone obscure VALUE
os.environ["OPENAI_API_KEY"]="VALUE"
client = OpenAI(api_key="VALUE")
Token is: VALUE
API key: VALUE
Api Key = VALUE
Your API key is VALUEVALUE
Secret Key: VALUE
http://127.0.0.1:8888/lab?token=VALUE
ray start --redis-password=VALUE
helm upgrade --set auth.password=VALUE
helm upgrade --set-string hfToken=VALUE
kubectl create secret docker-registry r --docker-password=VALUE
kubectl config set-credentials me --token=VALUE
Namespace(model='x', hf_token='VALUE', port=80)
EngineArgs(model='x', api_key=['VALUE'])
non-default args: {'api_key': ['VALUE'], 'model': 'x'}
credentials=VALUE
level=info msg="login" password=VALUE user=me
密码 password\uff1aVALUE
pass phrase: VALUE
clearml api.credentials.secret_key = "VALUE"
\x1b[32mtoken\x1b[0m: \x1b[36mVALUE\x1b[0m
10%\rpassword=VALUE
""".strip().splitlines()

HARMLESS = r"""
tokens=4096
max_tokens: 32
token: 17
tokenizer=/models/llama-3.1-8b/tokenizer.json
tokenizer_path: /models/llama3
--max-num-batched-tokens 8192
--tokenizer-mode auto
| token | count |
| tokens | 4096 |
token -> id
prompt tokens: 120, completion tokens: 512
Avg generation throughput: 123.4 tokens/s
token budget: 16384
wandb login failed
vault login succeeded
hf login required
password     is incorrect
password:     required
api key: missing
secret key not found
the key is layer.0
"key": "model.layers.0.self_attn.q_proj.weight"
--seed 31415926
step=31415926 loss=2.71
port: 31415
rank 3 of 16
echo hello7 | grep login
mongo -p2 status
unzip -p model1.zip
token_type_ids: [0, 1]
bos_token_id=128000
mapped token 128000 to 17
exec: "/etc/passwd": permission denied: unknown
error mounting "/var/lib/kept" to rootfs at "/etc/passwd": mount /var/lib/kept:/etc/passwd: not a directory
open /run/secrets/token: no such file or directory
chdir to cwd ("/etc/passwd") set in config.json failed: not a directory
/etc/passwd: Not a directory
""".strip().splitlines()


def test_tables_are_long() -> None:
    assert len(FORMS) >= 57
    assert len(HARMLESS) >= 20


@pytest.mark.parametrize("form", FORMS)
def test_secret_is_masked_in_the_form_people_write(form: str) -> None:
    text = form.replace("VALUE", VALUE)
    for escape in (r"\n", r"\t", r"\r", r"\x1b", r"\uff1a"):
        text = text.replace(escape, escape.encode().decode("unicode_escape"))
    shown = Mask().text(text)
    assert MASK in shown
    assert not any(secret in shown for secret in (VALUE, "31415926", "3141"))


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_kept(text: str) -> None:
    assert Mask().text(text) == text


PATTERNS: tuple[NamedValue | ValueForm, ...] = (*NAMED_VALUES, *secretpatterns.FORMS)
WITH_WORDS = [form for form in PATTERNS if form.words]


@pytest.mark.parametrize("form", WITH_WORDS, ids=range(len(WITH_WORDS)))
def test_every_match_contains_a_word_of_its_form(form: NamedValue | ValueForm) -> None:
    @settings(max_examples=10, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(form.pattern))
    def check(text: str) -> None:
        assert secretpatterns.may_match(form.words, secretpatterns.lower(text))

    check()
