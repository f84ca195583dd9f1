//! What looks like a secret and is none.

use base64::Engine as _;

use super::*;

/// Bytes without a pattern, the same each time.
fn noise(n_bytes: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..n_bytes).map(|_| next()).collect()
}

// REQ: SES-8
#[test]
fn hashes_ids_links_and_code_are_left_as_they_are() {
    for text in [
        "d41d8cd98f00b204e9800998ecf8427e",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "550e8400-e29b-41d4-a716-446655440000",
        "\"integrity\": \"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\"",
        "checksum = \"8e60d3430d3a69478ad0993f19238d2df97c507009a52b3c10addcd7f6bcb916\"",
        "resolved \"https://registry.yarnpkg.com/@babel/core/-/core-7.24.0.tgz#56cbda6b185ae9d9bed369816a8f4423c5f2ff1b\"",
        "git+ssh://git@github.com/rust-lang/cargo.git#0123456789abcdef0123456789abcdef01234567",
        "https://example.com:8080/a@b",
        "http://localhost:3000?email=a@b.org",
        "http://[::1]:8080/",
        "git@github.com:owner/name.git",
        "postgres://user:${PASSWORD}@host/db",
        "postgres://user:<password>@host/db",
        "postgres://user:PASSWORD@host, amqp://u:****@h",
        "Authorization: Bearer <token>",
        "Authorization: Bearer ${GITHUB_TOKEN}",
        "authorization: this.props.oauth2Token",
        "a bearer of 12 bad tidings; bearer token authentication",
        "x-api-key: your-api-key-goes-here",
        "if line == \"-----BEGIN PRIVATE KEY-----\" { return Kind::Private }",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAAAAAAAAAAAAAAAAAAAAA\n-----END PUBLIC KEY-----",
        "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "task-0123456789abcdef0123456789abcdef01234567",
        "const sk = risk-5; e.sk-t; disk-0123456789abcdef0123456789abcdef",
        "hf_tokenizer_config, hf_hub_download, npm_config_registry, npm_package_version",
        "eyJ.eyJ.x eyJhbGciOiJIUzI1NiJ9.not.three",
        "xoxb-your-token-here sk_test_your_key pypi-AgEIcHlwaS5vcmc",
        "!function(e,t){\"object\"==typeof exports?t(exports):t(e.AIza={})}(this,function(e){var n=1e3})",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx3mQqDFmpGFh1vKxk7yqS8u9Zk1mN0aQ2bR3cS4dT5 me@host",
        "arn:aws:iam::123456789012:role/ASIAN-Region-Role",
        "SG.1 hvs.2 sk-3 ghp_4 glpat-5",
    ] {
        check(text, text);
    }
}

// REQ: SES-8
#[test]
fn data_and_lock_files_are_left_as_they_are() {
    let noise = noise(300_000);
    let redactor = redactor(&[]);
    let base64 = base64::engine::general_purpose::STANDARD.encode(&noise);
    let wrapped: Vec<&str> =
        base64.as_bytes().chunks(76).filter_map(|it| std::str::from_utf8(it).ok()).collect();
    let url_safe = base64::engine::general_purpose::URL_SAFE.encode(&noise);
    let hex: String = noise.iter().map(|it| format!("{it:02x}")).collect();
    let lock = include_str!("../../../../Cargo.lock");
    let page = include_str!("../../../../ARCHITECTURE.md");
    for text in [&base64, &wrapped.join("\n"), &url_safe, &hex, lock, page] {
        assert!(matches!(redactor.text(text), Cow::Borrowed(_)), "{:?}", kinds(&redactor, text).0);
    }
}
