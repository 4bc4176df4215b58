"""Defines the patterns that recognize possible secrets in application output.

`FORMS` match values by themselves, such as cloud keys and tokens. `NAMED_VALUES` match a name, such as `password=`, and
then its value. Every pattern is bounded, so that malicious lines do not cause long run times.
"""

import re
from typing import Final, NamedTuple

WORDS: Final = (
    r"(?:passwo?r?d|passphrase|passcode|(?<=[_.-])pass(?![a-z])|(?<=[_;])pwd(?![a-z])|secret|token(?!s|iz)|credential|jwt"
    r"|(?:api|access|private|account|auth|client|encryption|license|master|service|signing|ssh|wandb)[_-]?key(?!s)|key[_-]data"
    r"|session[_-]?id|apikey)"
)
NAMES: Final = ("pass", "pwd", "secret", "token", "credential", "jwt", "key", "session")
"""The words of which every match of `WORDS` contains one."""

NAMED: Final = re.compile(WORDS, re.IGNORECASE)
"""The names of variables, options and fields with secret values."""

PHRASE: Final = r"(?:passwo?r?d|passphrase|passcode)"
LIKELY: Final = r"(?=[^\s\d]{0,64}\d)[^\s\"'<>(:;,]{6,256}"
"""A name that can be followed by a value. Ordinary words in this position do not contain digits."""

HARMLESS: Final = re.compile(
    r"(?:\b|_)(?:bos|cls|each|eos|end|first|image|last|mask|next|pad|per|sep|special|start|stop|unexpected|unk)[ _-]?token$"
    r"|(?:count|dir|endpoint|expiry|file|id|index|kind|len|length|limit|name|path|ref|ttl|type|uri|url|version)s?$",
    re.IGNORECASE,
)
"""The names of values that are not secret, such as language model tokens and locations of secrets."""

HARMLESS_EXCEPT: Final = re.compile(r"session[_-]?id$", re.IGNORECASE)

PLAIN: Final = re.compile(
    r"[\[{(]*[-+.\d]*(?:[a-z]{1,2})?|\*+|true|false|yes|no|none|nil|null|undefined|\$\{?\w+\}?|\$\(\w+\)"
    r"|(?:not|too|empty|expired|incorrect|invalid|missing|required|unset|wrong)[.!]?",
    re.IGNORECASE,
)
"""Values that are not secret, regardless of their name: numbers as in `token=17`, references, and error words."""

PATH: Final = re.compile(r"(?:\A|[\s\"'=(])/[\w./-]{0,256}\Z")
"""The end of the text before a name that is the last element of an absolute path (as in `/etc/passwd`)."""

OF_PATHS: Final = re.compile(r"[a-z/-]+")
"""A word that follows a path in a message about a file, such as `permission`, `no` or `mount`."""

_QUOTE: Final = r"\\{0,7}[\"']"
_QUOTED: Final = (
    rf"(?:\w{{0,20}}\()?[bru]{{0,2}}(?P<quote>{_QUOTE})(?P<quoted>[^\n]{{1,4096}}?)(?:(?<!\\)(?P=quote)|(?=\n|\Z))"
)
_BARE: Final = r"(?P<bare>(?:[^\s\"',;]|[,;](?![\s\"']|[\w.-]{1,40}[\"']?\s?[:=]|\Z)|[\"'](?=\w)){1,4096})"
_TAIL: Final = r"[\w.-]{0,40}"


class NamedValue(NamedTuple):
    """The patterns of a name, of a value, and of both together, and the words of which every match contains one."""

    head: "re.Pattern[str]"
    value: "re.Pattern[str]"
    pattern: "re.Pattern[str]"
    words: tuple[str, ...]


class ValueForm(NamedTuple):
    """The pattern of a value, and the words of which every match or its context contains one, or () for any text."""

    pattern: "re.Pattern[str]"
    words: tuple[str, ...]


def may_match(words: tuple[str, ...], lowered: str | None) -> bool:
    """Return whether a text can match the form with these words, according to its result of `lower`.

    This takes much less time than a search for the pattern, and few texts contain any of the words.
    """
    return not words or lowered is None or any(word in lowered for word in words)


def lower(text: str) -> str | None:
    """Return a text in lower case, or None if it contains letters that match other letters regardless of case.

    >>> lower("API Key"), lower("to\u212aen"), lower("pa\u017f\u017fword")
    ('api key', 'token', None)
    """
    return None if any(letter in text for letter in "\u0130\u0131\u017f") else text.lower()


def _form(words: tuple[str, ...], head: str, value: str) -> NamedValue:
    head_pattern, value_pattern, pattern = (re.compile(part, re.IGNORECASE) for part in (head, value, head + value))
    return NamedValue(head_pattern, value_pattern, pattern, words)


_VALUE: Final = rf"(?:{_QUOTED}|{_BARE})"
_REST: Final = r"(?P<bare>[^\"'\n\\]{4,4096})"

NAMED_VALUES: Final = (
    # HTTP headers: the value is the rest of the line
    _form(
        ("authorization",),
        r"authorization[ \t]{0,4}:[ \t]{0,4}(?:digest|aws4-hmac-sha256)[ \t]{1,4}",
        r"(?P<bare>[^\n]{4,4096})",
    ),
    _form(
        ("authorization",),
        rf"authorization(?:{_QUOTE})?[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:{_QUOTE})?"
        r"(?:(?:bearer|basic|token|api-?key|negotiate)[ \t]{1,4})?",
        _REST,
    ),
    _form(("cookie",), rf"\b(?:set-)?cookie(?:{_QUOTE})?[ \t]{{0,4}}:[ \t]{{0,4}}(?:{_QUOTE})?", _REST),
    # a variable whose name and value are separate fields, as in YAML and JSON
    _form(
        ("value",),
        rf"\bname(?:{_QUOTE})?[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:{_QUOTE})?[\w.-]{{0,40}}{WORDS}{_TAIL}(?:{_QUOTE})?[\s,]{{1,40}}"
        rf"(?:{_QUOTE})?value(?:{_QUOTE})?[ \t]{{0,4}}[:=][ \t]{{0,4}}",
        _VALUE,
    ),
    # a passphrase can contain spaces
    _form(
        ("passphrase",),
        rf"passphrase{_TAIL}[ \t]{{0,4}}[:=][ \t]{{0,4}}(?=[^\s\"'\\])",
        r"(?P<bare>[^\n\"',;]{1,4096})",
    ),
    # an option and its value, as two words or as two list items
    _form(
        NAMES,
        rf"(?<![\w-])--?[\w-]{{0,40}}?{WORDS}[\w-]{{0,20}}(?:(?:{_QUOTE})?,\s{{0,20}}|(?:{_QUOTE})?\n[ \t]{{0,20}}-[ \t]{{1,4}}|[ \t]{{1,20}})(?![-|&])",
        _VALUE,
    ),
    # commands that are followed by a token or password, or by an option with one
    _form(
        ("login",),
        r"\b(?:wandb|vault|hf|comet|clearml)[ \t]{1,4}login[ \t]{1,4}(?:--?[\w-]{1,20}(?:[= ]https?://\S{1,256})?[ \t]{1,4}){0,4}(?=[^\s\d]{0,64}\d)(?=[^\s]{6})(?![-|&])",
        _VALUE,
    ),
    _form(
        ("aws configure", "dvc remote", "pip config", "ngc config", "gh secret"),
        r"\b(?:aws configure set|dvc remote modify|pip config set|ngc config set|gh secret set)\b[^\n]{0,80}?(?:secret|token|password)\w{0,20}[ \t]{1,4}",
        _VALUE,
    ),
    _form(
        ("mongo", "az login", "mysqladmin", "rabbitmqadmin", "sqlcmd"),
        r"\b(?:mongo(?:sh|dump|restore)?|az login|mysqladmin|rabbitmqadmin|sqlcmd)\b[^\n]{0,200}?[ \t]-p[ \t]{1,4}",
        _VALUE,
    ),
    _form(("ldapsearch",), r"\bldapsearch\b[^\n]{0,200}?[ \t]-w[ \t]{1,4}", _VALUE),
    _form(
        ("rclone obscure", "mc alias set", "openssl enc"),
        r"\b(?:rclone obscure|mc alias set[ \t]\S{1,64}[ \t]\S{1,256}[ \t]\S{1,128}|openssl enc\b[^\n]{0,80}?[ \t]-k)[ \t]{1,4}",
        _VALUE,
    ),
    _form(
        ("echo",),
        r"\becho[ \t]{1,4}(?=[^\n|]{1,256}\|[^\n]{0,40}(?:--password-stdin|--with-token|chpasswd))",
        r"(?P<bare>[^\s\"',;|]{4,256}|[\"'][^\"'\n]{4,256}[\"'])",
    ),
    _form(("-pass",), r"-pass(?:in|out)[ \t]{1,4}pass:", _VALUE),
    # a table row, or an arrow
    _form(
        NAMES,
        rf"(?:^|[|\u2502 \t]){_TAIL}{WORDS}{_TAIL}[ \t]{{0,80}}(?:[|\u2502]|->|\u2192)[ \t]{{1,80}}(?=[^\s\d]{{0,64}}\d|[^\s|]{{16}})(?![-|&])",
        r"(?P<bare>[^\s|\u2502]{4,4096})",
    ),
    _form(('"key"',), r"\"key\"[ \t]{0,4}:[ \t]{0,4}(?=\"[0-9a-f]{32}\")", _VALUE),
    _form(
        ("sshpass", "docker login", "podman login", "helm registry login"),
        r"\b(?:sshpass|docker login|podman login|helm registry login)\b[^\n]{0,200}?[ \t]-p[ \t]?",
        _VALUE,
    ),
    _form(("mysql", "mariadb"), r"\b(?:mysql|mariadb)\w{0,10}[ \t][^\n]{0,200}?(?<=[ \t])-p(?=\S)", _VALUE),
    _form(("redis-cli",), r"\bredis-cli\b[^\n]{0,200}?[ \t]-a[ \t]{1,4}", _VALUE),
    _form(("curl",), r"\bcurl\b[^\n]{0,200}?[ \t](?:-u|--user)[ \t]{0,4}(?=[\"']?[\w.-]{0,64}:)", _VALUE),
    # short password names and variable names: the value must contain a digit, because ordinary words can follow
    _form(
        ("pass", "pwd"),
        rf"(?<![\w.-])(?:pass|pwd)[ \t]{{0,4}}[:=][ \t]{{0,4}}(?={LIKELY})(?=[^\s]{{0,64}}[a-z])",
        _VALUE,
    ),
    _form(
        ("_password", "_token", "_secret", "_key"),
        rf"\b[A-Z]\w{{0,40}}_(?:PASSWORD|TOKEN|SECRET|KEY)[ \t]{{1,4}}(?={LIKELY})(?=[^\s]{{12}})(?=[^\s]{{0,64}}[a-z])",
        _VALUE,
    ),
    _form(
        ("htpasswd",),
        r"\bhtpasswd\b[^\n]{0,40}?[ \t]-\w{0,4}b\w{0,4}[ \t]{1,4}\S{1,256}[ \t]{1,4}\S{1,64}[ \t]{1,4}",
        _VALUE,
    ),
    _form(("--from-literal",), r"--from-literal[= ][\"']?[\w.-]{1,64}=", _VALUE),
    # prose: the value must contain a digit, because ordinary words can follow
    _form(("pass",), rf"\b{PHRASE}[ \t]{{1,4}}(?={LIKELY})", r"(?P<bare>[^\s\"',;]{1,4096})"),
    _form(
        ("token", "key"),
        r"\b(?:token|(?:api|access|secret|private)[ _-]?key)[ \t]{1,4}(?=[^\s\d]{0,64}\d)(?=[^\s\"'<>(:]{12})(?=\d{0,64}[a-z])",
        r"(?P<bare>[^\s\"',;]{1,4096})",
    ),
    # prose, SQL, .netrc
    _form(("pass",), r"\b(?:passwo?r?d|passphrase)[ \t]{1,4}(?:(?:is|was|set to)[ \t]{1,4})?(?=[\"'])", _VALUE),
    _form(("pass",), r"\b(?:passwo?r?d|passphrase)[ \t]{1,4}(?:is|was|set to)[ \t]{1,4}", _VALUE),
    _form(
        ("token", "key"),
        r"\b(?:token|(?:api|access|secret|private)[ _-]?key)(?:[ \t]{1,4}(?:is|was|set to))?[ \t]{0,4}:?[ \t]{1,4}(?=[^\s\d]{0,64}\d)(?=[^\s\"'<>(:]{12})(?=\d{0,64}[a-z])",
        r"(?P<bare>[^\s\"',;]{1,4096})",
    ),
    _form(
        ("key", "pass", "token is"),
        r"\b(?:(?:api|access|secret|private)[ _-]key|pass ?phrase|token is)[ \t]{0,4}[:=][ \t]{0,20}",
        r"(?P<bare>[^\s\"',;]{4,4096})",
    ),
    _form(("identified by",), r"\bidentified by[ \t]{1,4}", _VALUE),
    _form(("machine",), r"\bmachine[ \t]\S{1,256}[ \t]{1,4}login[ \t]\S{1,256}[ \t]{1,4}password[ \t]{1,4}", _VALUE),
    # XML, URL queries, registry credentials, storage accounts
    _form(NAMES, rf"<[\w:.-]{{0,40}}{WORDS}{_TAIL}(?:\s[^>\n]{{0,80}})?>", r"(?P<bare>[^<\n]{1,4096})(?=</)"),
    _form(
        ("sig", "key=", "auth=", "code=", "x-amz-", "x-goog-"),
        r"(?:[?&](?:sig|signature|key|auth|code)|\bSharedAccessSignature [^\s]{0,256}?\bsig|\bx-(?:amz|goog)-(?:signature|credential|security-token))=",
        r"(?P<bare>[^&\s\"'#]{4,4096})",
    ),
    _form(("auth",), rf"{_QUOTE}auth{_QUOTE}[ \t]{{0,4}}:[ \t]{{0,4}}(?={_QUOTE}[\w+/]{{8}})", _VALUE),
    # name and quoted value, including nested JSON and YAML block scalars
    _form(
        NAMES,
        rf"{WORDS}{_TAIL}(?:\x1b\[[\d;]{{0,12}}m)?(?:{_QUOTE})?(?:\[\d{{0,3}})?(?:\])?[ \t]{{0,40}}(?:=>|:=|[:=\uff1a]|%3[AD])(?:\x1b\[[\d;]{{0,12}}m)?[ \t]{{0,40}}"
        r"(?:(?:[|>][-+]?)?\n[ \t]{1,40}(?![\w.-]{1,64}:(?:\s|\Z)|-[ \t]))?",
        _VALUE,
    ),
)
"""The values after a name. The groups are `quoted` (within `quote`) or `bare`."""

_BASE64_LINE: Final = r"(?=[^\n]{0,76}[A-Z])(?=[^\n]{0,76}[a-z])[A-Za-z0-9+/]{60,76}={0,2}"
_PRIVATE: Final = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_END: Final = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

_PREFIXES: Final = (
    r"hf_|api_org_|sk-|gsk_|r8_|nvapi-|xai-|pplx-|gh[pousr]_|github_pat_|gl(?:pat|rt|dt|cbt|ptt)-|xox[abeoprs]-|xapp-|npm_|pypi-"
    r"|dckr_pat_|hv[sbr]\.|gls?[ac]_|NRAK-|sntry[su]_|lin_api_|ATATT3|tskey-|shpat_|dapi|pul-|whsec_|[rs]k_(?:live|test)_"
)

FORMS: Final = tuple(
    ValueForm(re.compile(form, re.DOTALL), words)
    for form, words in (
        # multi-line private keys: complete, without the last line, or without the first lines
        (rf"{_PRIVATE}.*?(?:{_END}|\Z)", ("private key",)),
        (rf"\A(?:[A-Za-z0-9+/=]{{1,76}}\s{{1,2}}){{0,200}}{_END}", ("private key",)),
        (
            rf"(?P<kept>-----BEGIN (?:TRUSTED )?(?:CERTIFICATE|PUBLIC KEY)-----[^-]{{1,65536}}-----END)|(?<![^\n]){_BASE64_LINE}(?:\r?\n{_BASE64_LINE}){{1,400}}(?:\r?\n[A-Za-z0-9+/]{{1,76}}={{1,2}})?(?![^\r\n])",
            (),
        ),
        (r"\bLS0tLS1CRUdJTi[\w+/=]{40,16384}", ("ls0tls1crudjti",)),
        (r"(?i:(?<=bearer )|(?<=basic ))(?=[a-z]{0,64}[^a-z\s])[\w.~+/=-]{8,4096}", ("bearer ", "basic ")),
        # users and passwords in URLs and in Go data source names
        (r"(?<=://)[^/\s:@\[\]\"']{0,256}:(?!\d{1,5}(?:[/\s]|$))[^\s\"'<>]{1,256}(?=@[\w\[])", ("://",)),
        (r"(?<=://)[\w-]{16,256}(?=@)", ("://",)),
        (r"(?<![\w.:/])[\w.-]{1,64}:[^\s\"'@]{1,256}(?=@(?:tcp|unix)\()", ("@tcp(", "@unix(")),
        # AWS, Google, Azure, Alibaba, DigitalOcean
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", ("akia", "asia")),
        (r"\b(?:IQoJ|FwoG|FQoG)[\w+/=]{60,4096}", ("iqoj", "fwog", "fqog")),
        (r"\bAIza[\w-]{35}(?![\w-])", ("aiza",)),
        (r"\bya29\.[\w-]{20,2048}", ("ya29.",)),
        (r"\bGOCSPX-[\w-]{20,64}", ("gocspx-",)),
        (r"\b[\w~.-]{3}\dQ~[\w~.-]{31,34}", ("q~",)),
        (r"\bLTAI[0-9A-Za-z]{12,24}\b", ("ltai",)),
        (r"\bdo[opr]_v1_[0-9a-f]{64}\b", ("_v1_",)),
        # JSON web tokens, password hashes, age keys
        (r"(?<![\w-])eyJ[\w-]{8,2000}+\.[\w-]{8,2000}+\.[\w-]{8,2000}", ("eyj",)),
        (r"\$(?:2[abxy]|5|6|y|apr1|argon2[a-z]{1,2})\$[\w./$,=+-]{16,256}", ("$",)),
        (r"\bAGE-SECRET-KEY-1[0-9A-Z]{40,64}", ("age-secret-key-",)),
        # tokens with a service prefix
        (rf"\b(?:{_PREFIXES})[\w=.-]{{16,512}}", ()),
        (r"\bSG\.[\w-]{16,64}\.[\w-]{16,64}", ("sg.",)),
        (r"(?<=hooks\.slack\.com/services/)[\w/]{16,128}", ("hooks.slack.com/services/",)),
        (r"(?<=/api/webhooks/)\d{8,24}/[\w-]{20,128}", ("/api/webhooks/",)),
        (r"(?<![\w:])\d{8,10}:AA[\w-]{33}(?![\w-])", (":aa",)),
    )
)
"""The values with the form of a secret. The group `kept` is not secret."""
