//! The shapes that are known, each with where it is documented.
//!
//! A row is for tokens that differ from other text by their shape: a beginning of their own, or
//! the words in front of them. Keys that are plain hexadecimal or base64 have no row, since hashes and
//! data look the same; `ennead.secretEnv` and `ennead.redact.variables` name those.

use super::{
    check::{
        any, both_cases, credential, jwt, key_block, mixed, no_example, opaque, password, random,
    },
    table::{
        ASSIGN, AT, BASE32, BASE64, BLANK, COLON, DASHED, DIGIT_LETTER, DOT, HEX, LETTER, OPAQUE,
        PADDED, PASSWORD, QUOTE, SEPARATOR, SecretRule, Shape, TOKEN68, UPPER, URL64, URL64_DOT,
        USER, WORD, around, named, secret, token,
    },
    vault_key::{DIGITS, SECRET},
};

const OWN: &str = "redaction.md, The vault";
const GITLEAKS: &str = "gitleaks, config/gitleaks.toml";
const TRUFFLEHOG: &str = "TruffleHog, pkg/detectors";
const BOTH: &str = "gitleaks, config/gitleaks.toml; TruffleHog, pkg/detectors";
const GITHUB_PATTERNS: &str = "GitHub documentation, Supported secret scanning patterns";

/// The rows. Where two take the same bytes the first one names them.
pub const TABLE: &[SecretRule] = &[
    token("anthropic-key", &["sk-ant-"], &[secret(URL64, 20, 300)], mixed, GITLEAKS),
    token("openrouter-key", &["sk-or-v1-"], &[secret(HEX, 64, 64)], mixed, TRUFFLEHOG),
    token(
        "openai-key",
        &["sk-proj-", "sk-svcacct-", "sk-service-", "sk-admin-", "sk-None-"],
        &[secret(URL64, 20, 400)],
        mixed,
        BOTH,
    ),
    // Also that of other providers with the same interface.
    token("openai-key", &["sk-"], &[secret(DIGIT_LETTER, 32, 128)], mixed, GITLEAKS),
    token("groq-key", &["gsk_"], &[secret(DIGIT_LETTER, 40, 80)], mixed, TRUFFLEHOG),
    token("xai-key", &["xai-"], &[secret(WORD, 60, 120)], mixed, TRUFFLEHOG),
    token("perplexity-key", &["pplx-"], &[secret(DIGIT_LETTER, 40, 80)], mixed, GITLEAKS),
    token("nvidia-key", &["nvapi-"], &[secret(URL64, 60, 90)], mixed, TRUFFLEHOG),
    token("replicate-key", &["r8_"], &[secret(URL64, 37, 37)], mixed, TRUFFLEHOG),
    token(
        "hugging-face-token",
        &["hf_", "api_org_"],
        &[secret(DIGIT_LETTER, 30, 60)],
        both_cases,
        BOTH,
    ),
    token(
        "aws-access-key-id",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        &[secret(BASE32, 16, 16)],
        no_example,
        "AWS IAM User Guide, IAM identifiers, unique ID prefixes",
    ),
    named(
        "aws-secret-key",
        &["aws_secret_access_key", "aws_secret_key", "secretaccesskey"],
        &[around(SEPARATOR, 1, 12), secret(BASE64, 40, 40)],
        random,
        "AWS IAM User Guide, Manage access keys",
    ),
    named(
        "aws-session-token",
        &["aws_session_token", "sessiontoken"],
        &[around(SEPARATOR, 1, 12), secret(BASE64, 100, 2048)],
        random,
        "AWS IAM User Guide, Use temporary credentials",
    ),
    token(
        "aws-bedrock-key",
        &["ABSKQmVkcm9ja0FQSUtleS"],
        &[secret(BASE64, 40, 400)],
        mixed,
        GITLEAKS,
    ),
    token("google-api-key", &["AIza"], &[secret(URL64, 35, 35)], mixed, GITLEAKS),
    token(
        "google-oauth-token",
        &["ya29."],
        &[secret(URL64_DOT, 30, 2048)],
        mixed,
        "Google Cloud documentation, Token types",
    ),
    token("google-oauth-secret", &["GOCSPX-"], &[secret(URL64, 28, 28)], mixed, GITHUB_PATTERNS),
    named(
        "azure-storage-key",
        &["accountkey="],
        &[secret(BASE64, 86, 88)],
        random,
        "Azure documentation, Configure Azure Storage connection strings",
    ),
    token(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        &[secret(DIGIT_LETTER, 36, 255)],
        mixed,
        "GitHub blog 2021-04-05, Behind GitHub's new authentication token formats",
    ),
    token(
        "github-token",
        &["github_pat_"],
        &[secret(WORD, 50, 255)],
        mixed,
        "GitHub documentation, Managing your personal access tokens",
    ),
    token(
        "gitlab-token",
        &[
            "glpat-", "gloas-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-",
            "glagent-", "glsoat-", "glffct-",
        ],
        &[secret(URL64_DOT, 20, 300)],
        mixed,
        "GitLab documentation, GitLab token overview, token prefixes",
    ),
    token(
        "slack-token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xoxc-", "xoxd-", "xapp-"],
        &[secret(DASHED, 20, 400)],
        mixed,
        "Slack documentation, Tokens",
    ),
    SecretRule {
        at_word: false,
        with_anchor: false,
        ..token(
            "slack-webhook",
            &[
                "hooks.slack.com/services/",
                "hooks.slack.com/workflows/",
                "hooks.slack.com/triggers/",
            ],
            &[secret(BASE64, 20, 100)],
            mixed,
            GITLEAKS,
        )
    },
    token(
        "stripe-key",
        &["sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_org_"],
        &[secret(WORD, 16, 255)],
        mixed,
        "Stripe documentation, API keys",
    ),
    token(
        "stripe-webhook-secret",
        &["whsec_"],
        &[secret(BASE64, 32, 128)],
        mixed,
        "Stripe documentation, Receive Stripe events in your webhook endpoint",
    ),
    token(
        "npm-token",
        &["npm_"],
        &[secret(DIGIT_LETTER, 36, 36)],
        mixed,
        "GitHub blog 2021-09-23, npm has a new access token format",
    ),
    token(
        "pypi-token",
        &["pypi-AgE"],
        &[secret(URL64, 50, 1024)],
        mixed,
        "PyPI documentation, API tokens",
    ),
    token(
        "rubygems-key",
        &["rubygems_"],
        &[secret(HEX, 48, 48)],
        mixed,
        "RubyGems guides, API key scopes",
    ),
    token("docker-token", &["dckr_pat_", "dckr_oat_"], &[secret(URL64, 27, 80)], mixed, TRUFFLEHOG),
    token(
        "sendgrid-key",
        &["SG."],
        &[secret(URL64, 22, 22), secret(DOT, 1, 1), secret(URL64, 43, 43)],
        mixed,
        GITLEAKS,
    ),
    token(
        "digitalocean-token",
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        &[secret(HEX, 64, 64)],
        mixed,
        GITLEAKS,
    ),
    token(
        "shopify-token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        &[secret(HEX, 32, 32)],
        mixed,
        GITLEAKS,
    ),
    token("databricks-token", &["dapi"], &[secret(HEX, 32, 32)], mixed, GITLEAKS),
    token("vault-token", &["hvs.", "hvb.", "hvr."], &[secret(URL64, 24, 300)], mixed, GITLEAKS),
    token("grafana-token", &["glsa_"], &[secret(WORD, 41, 41)], mixed, GITLEAKS),
    token("linear-key", &["lin_api_"], &[secret(DIGIT_LETTER, 40, 40)], mixed, GITLEAKS),
    token("atlassian-token", &["ATATT3"], &[secret(PADDED, 150, 300)], mixed, GITLEAKS),
    token("pulumi-token", &["pul-"], &[secret(HEX, 40, 40)], mixed, GITLEAKS),
    token("postman-key", &["PMAK-"], &[secret(DASHED, 59, 59)], mixed, GITLEAKS),
    token(
        "tailscale-key",
        &["tskey-"],
        &[secret(DASHED, 20, 100)],
        mixed,
        "Tailscale documentation, tailscale.com/kb/1277/key-prefixes",
    ),
    token("supabase-key", &["sbp_"], &[secret(DIGIT_LETTER, 40, 40)], mixed, TRUFFLEHOG),
    token(
        "age-key",
        &["AGE-SECRET-KEY-1"],
        &[secret(UPPER, 58, 58)],
        any,
        "age-encryption.org/v1, The X25519 recipient type",
    ),
    token("ennead-vault-key", &[SECRET], &[secret(HEX, DIGITS, DIGITS)], any, OWN),
    token(
        "jwt",
        &["eyJ"],
        &[
            secret(URL64, 8, 2048),
            secret(DOT, 1, 1),
            secret(URL64, 8, 8192),
            secret(DOT, 1, 1),
            secret(URL64, 16, 2048),
        ],
        jwt,
        "RFC 7519",
    ),
    SecretRule {
        at_word: false,
        shape: Shape::Block,
        ..token(
            "private-key",
            &[
                "-----BEGIN PRIVATE KEY-----",
                "-----BEGIN RSA PRIVATE KEY-----",
                "-----BEGIN EC PRIVATE KEY-----",
                "-----BEGIN DSA PRIVATE KEY-----",
                "-----BEGIN OPENSSH PRIVATE KEY-----",
                "-----BEGIN ENCRYPTED PRIVATE KEY-----",
                "-----BEGIN PGP PRIVATE KEY BLOCK-----",
            ],
            &[],
            key_block,
            "RFC 7468; OpenSSH PROTOCOL.key; RFC 9580, section 6.2",
        )
    },
    named(
        "url-password",
        &["://"],
        &[around(USER, 0, 128), around(COLON, 1, 1), secret(PASSWORD, 1, 256), around(AT, 1, 1)],
        password,
        "RFC 3986, section 3.2.1",
    ),
    named(
        "authorization",
        &["authorization"],
        &[
            around(QUOTE, 0, 6),
            around(ASSIGN, 1, 1),
            around(QUOTE, 0, 6),
            around(LETTER, 3, 12),
            around(BLANK, 1, 4),
            secret(TOKEN68, 8, 4096),
        ],
        credential,
        "RFC 9110, section 11.6.2; RFC 7617",
    ),
    named(
        "authorization",
        &["authorization"],
        &[around(QUOTE, 0, 6), around(ASSIGN, 1, 1), around(QUOTE, 0, 6), secret(OPAQUE, 16, 4096)],
        opaque,
        "RFC 9110, section 11.6.2",
    ),
    SecretRule {
        at_word: true,
        ..named(
            "authorization",
            &["bearer "],
            &[secret(TOKEN68, 20, 4096)],
            opaque,
            "RFC 6750, section 2.1",
        )
    },
    named(
        "api-key-header",
        &[
            "api-key",
            "x-auth-token",
            "x-access-token",
            "private-token",
            "x-vault-token",
            "x-amz-security-token",
            "ocp-apim-subscription-key",
        ],
        &[around(QUOTE, 0, 6), around(ASSIGN, 1, 1), around(QUOTE, 0, 6), secret(OPAQUE, 16, 4096)],
        opaque,
        "documentation of Anthropic, Azure, Google, GitLab and Vault about their headers",
    ),
];
