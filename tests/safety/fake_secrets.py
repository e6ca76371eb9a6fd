"""Sixty kinds of secrets, made up when a test runs, so that nothing in this repository looks like one; and look-alikes.

In a form `{A36}` stands for 36 letters and digits, `{a32}` for small ones, `{U16}` for capital letters and digits,
`{h40}` for hexadecimal digits, `{d12}` for digits, `{b64}` for base64. Forms are written down from what the services
say of their keys, not from the rules that find them.
"""

from __future__ import annotations

import random
import re
import string

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "h": "0123456789abcdef",
    "d": string.digits,
    "b": string.ascii_letters + string.digits + "+/",
}
KINDS: dict[str, str] = {
    "1password": "A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}",
    "adafruit": "ADAFRUIT_KEY={a32}",
    "age": "AGE-SECRET-KEY-1{age58}",
    "airtable": "airtable: pat{A14}.{h64}",
    "algolia": "algolia_api_key = '{a32}'",
    "anthropic": "sk-ant-api03-{A93}AA",
    "asana": "asana_client_secret: {a32}",
    "atlassian": "ATATT3{A186}",
    "aws": "AKIA{U16}",
    "azure": "{A3}8Q~{A34}",
    "bitbucket": "bitbucket_client_secret='{a64}'",
    "clojars": "CLOJARS_{a60}",
    "cloudflare": "cloudflare_api_key: '{a40}'",
    "databricks": "dapi{h32}",
    "datadog": "datadog_api_key = {h32}",
    "digitalocean": "dop_v1_{h64}",
    "docker hub": "dckr_pat_{A27}",
    "doppler": "dp.pt.{A43}",
    "dropbox": "dropbox_token: sl.{A135}",
    "duffel": "duffel_live_{A43}",
    "dynatrace": "dt0c01.{U24}.{U64}",
    "fastly": "fastly_api_token='{A32}'",
    "figma": "figd_{A40}",
    "flutterwave": "FLWSECK_TEST-{h32}-X",
    "frame.io": "fio-u-{A64}",
    "github": "ghp_{A36}",
    "github fine grained": "github_pat_{A82}",
    "gitlab": "glpat-{A20}",
    "gocardless": "gocardless_token = live_{A40}",
    "google": "AIza{A35}",
    "grafana": "glsa_{A32}_{h8}",
    "groq": "gsk_{A52}",
    "hashicorp": "{A14}.atlasv1.{A67}",
    "heroku": "HRKU-AA{A58}",
    "hugging face": "hf_{l34}",
    "linear": "lin_api_{A40}",
    "mailgun": "mailgun_key=key-{h32}",
    "mapbox": "mapbox_token = pk.{a60}.{a22}",
    "new relic": "new_relic_key = NRAK-{U27}",
    "notion": "ntn_{d11}{A35}",
    "npm": "npm_{a36}",
    "openai": "sk-proj-{A74}T3BlbkFJ{A74}",
    "planetscale": "pscale_tkn_{A43}",
    "postman": "PMAK-{h24}-{h34}",
    "pulumi": "pul-{h40}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{A80}",
    "rubygems": "rubygems_{h48}",
    "sendgrid": "SG.{A22}.{A43}",
    "sentry": "sntryu_{h64}",
    "shopify": "shpat_{h32}",
    "slack": "xoxb-{d12}-{d12}-{A24}",
    "snyk": "snyk_token = {h8}-{h4}-{h4}-{h4}-{h12}",
    "stripe": "sk_live_{A24}",
    "telegram": "telegram bot token: {d9}:A{A34}",
    "telegram without its name": "curl https://api.telegram.org/bot{d10}:AA{A33}/getMe",
    "twilio": "twilio api key SK{h32}",
    "vault": "hvs.{A95}",
    "jwt": "eyJ{A34}.eyJ{A80}.{A43}",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}\n{b48}==\n-----END RSA PRIVATE KEY-----",
    "password": "The password is {A4}-{A5}!{d3}.",
    "address": "postgres://shop:{A12}@db.local/shop",
    "card": "{card}",
    "passphrase": "passphrase: {a5}-{d3}-{A6}",
    "a token in digits": "The deploy token is {h40}.",
    "a token beside a word that is no commit's": "token: {h40} for the digestion of parcels",
    "a password that begins like a place": "password: from-{a5}{d2}-{d4}",
    "a password in an .env file": "DB_PASSWORD={A12}!{d2}",
    "a key in a shell script": "export AWS_SECRET_ACCESS_KEY='/{b39}'",
    "a mail password": "SMTP_PASS={A16}",
    "a numbered key": "OPENAI_API_KEY_2={A40}",
    "a key in YAML": 'django_secret_key: "{A50}"',
    "a secret in JSON": '"clientSecret": "{A32}"',
    "a passphrase that begins like a hint": "passphrase: see-saw-{a5}{d3}-{A6}",
}
LOOKALIKES: tuple[str, ...] = (
    "Token is ERC-20/BEP-20 compatible.",
    "The secret is the-2-minute-rule.",
    "Access key: Ctrl+Alt+F12",
    "token: gpt-4o-2024-08-06",
    "postgres://postgres:postgres@localhost:5432/db",
    "amqp://guest:guest@localhost/",
    "https://x:$TOKEN@github.com/a/b",
    "A file that begins with -----BEGIN PRIVATE KEY----- is for nobody else to read.",
    "IMEI 490154203237518 of the phone",
    "default_rng(5292808890472453840)",
    "commit {h40} mends the bell",
    "sha256:{h64}",
    "md5 {h32}  harbour.iso",
    "id: {h8}-{h4}-4{h3}-8{h3}-{h12}",
    "![chart](data:image/png;base64,{b200})",
    "The tide table of 2026-11-15T09:12:00Z",
    "ISBN 978-3-16-148410-0",
    "Call +44 20 7946 0958 before ten.",
    "DE89 3704 0044 0532 0130 00",
    "Order 1234-5678-9012-3456 is late.",
    "4111 1111 1111 1112",
    "0000 0000 0000 0000",
    "The password is in the safe behind the picture.",
    "password: changeme-please-1",
    "password: <ask Bex>",
    "password=${DB_PASSWORD}",
    "password: ********",
    "token: <your-token-here-123>",
    "token = find_token(options.token_file)",
    "token = request.headers.get('x')",
    "DB_PASSWORD_FILE=/run/secrets/db-2",
    "DB_PASSWORD=$DB_PASSWORD_2",
    "CI_TOKEN=<paste-token-2-here>",
    "session_token = page.next_token_2()",
    "PRIMARY_KEY=users_id_2",
    "He arrived at 12345678:AA by train.",
    "secret: see the second chapter",
    "secret = os.environ['SECRET_7']",
    "api_key = ${API_KEY_2}",
    "api_key: str | None = None",
    "apiKey: process.env.OPENAI_API_KEY",
    "API_KEY={{ vault_api_key_2 }}",
    "Use sk-xxxxxxxxxxxxxxxxxxxxxxxx as a placeholder.",
    "class=sk-spinner-chasing-dot-wrapper-large",
    "sk-learn-contrib-imbalanced-metrics-2024",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_ is how a token of GitHub begins",
    "xoxb-your-token",
    "glpat-<token>",
    "-----BEGIN PUBLIC KEY-----\nMFwwDQYJ\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n{b64}\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{A43} ines@harbour",
    "https://example.org/token:page-2",
    "https://ines@example.org/wiki",
    "https://shop:8080@example.org",
    "git@github.com:harbour/bell.git",
    "postgres://shop@db.local/shop",
    "postgres://user:password-placeholder@host/db",
    "Tokens are counted by tokenizers, and a key opens a door.",
    "The door code is 1111.",
    "max_tokens: 4096",
    "token_count = 128000",
    "The token is refreshed every 15 minutes.",
    "secret santa is on 2026-12-18",
    "pwd: /home/ines/notes",
    "pip install pydantic-ai-slim[openai]==2.33.1",
    "breakwater-group-goes-first-2026-11",
    "CVE-2026-12345 and RFC 9110",
    "memory:deploys-go-through-the-blue-pool-first-2026",
    "npm_config_registry=https://registry.npmjs.org",
    "hf_hub_download(repo_id='a/b')",
    "The key to a good harbour is a quiet bell: 12 strokes.",
    "heroku config:get DATABASE_URL",
    "SG.1 is the name of the second gate",
    "Die Losung ist im Tresor; das Passwort kennt Maren.",
    "パスワードは金庫の中です。",
    "eyJ is how JSON begins in base64",
    "adobe photoshop 2026 = the new one",
    "The cache's token: {h40} is the commit that was built.",
    "token: {h40} (git sha of the last release)",
    "secret: arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbC1{A3}",
    "secret = projects/harbour-42/secrets/db-password/versions/7",
    "password: see-ticket-OPS-4412",
    "password: see-OPS-4412",
    "passphrase: ask-bex-see-wiki-page-12",
    "password: in-1password",
)


def make(form: str, seed: int = 7) -> str:
    """A text of this form."""
    chance = random.Random(f"{form} {seed}")

    def fill(found: re.Match[str]) -> str:
        if found[1] == "card":
            return _card(chance)
        if found[1] == "age":
            return "".join(chance.choices("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", k=int(found[2])))
        if found[1] == "l":
            return "".join(chance.choices(string.ascii_letters, k=int(found[2])))
        return "".join(chance.choices(ALPHABETS[found[1]], k=int(found[2])))

    return re.sub(r"\{(age|card|[AaUhdbl])(\d*)\}", fill, form)


def secret_of(kind: str, seed: int = 7) -> str:
    """The longest stretch that was made up: what must not be found anywhere afterwards."""
    fixed = re.split(r"\{[A-Za-z]+\d*\}", KINDS[kind])
    text = make(KINDS[kind], seed)
    parts: list[str] = []
    for piece in fixed:
        before, _, text = text.partition(piece) if piece else ("", "", text)
        parts.append(before)
    return max([*parts, text], key=len)


def _card(chance: random.Random) -> str:
    digits = [4, 5, *(chance.randrange(10) for _ in range(13))]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[::-2]]
    digits.append(-(sum(doubled) + sum(digits[-2::-2])) % 10)
    number = "".join(map(str, digits))
    return " ".join(number[place : place + 4] for place in range(0, 16, 4))
