//! Variables that name endpoints, one by one and as a chain; those that cannot be used.

use super::*;

#[track_caller]
fn check(variables: &[(&str, &str)], expected: Result<(&str, &str, usize), &str>) {
    let environment =
        variables.iter().fold(Environment::empty(), |it, (name, value)| it.with(name, value));
    let found = Endpoint::from_environment(&environment);
    match (found, expected) {
        (Ok(it), Ok(expected)) => {
            let is_secret = |name: &&(String, String)| {
                ["x-api-key", "authorization"].contains(&name.0.as_str())
            };
            let n_secret = it.headers.iter().filter(is_secret).count();
            assert_eq!((&*it.provider, &*it.base, n_secret), expected);
        }
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
        (found, expected) => panic!("{found:?}, expected {expected:?}"),
    }
}

// REQ: MDL-1
#[test]
fn endpoint_is_read_from_the_variables_of_its_provider() {
    let (key, base) = (("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://a:1"));
    check(&[key], Ok(("anthropic", "https://api.anthropic.com", 1)));
    check(&[base], Ok(("anthropic", "http://a:1", 0)));
    check(&[("ANTHROPIC_AUTH_TOKEN", "t"), base], Ok(("anthropic", "http://a:1", 1)));
    check(&[("ANTHROPIC_AUTH_TOKEN", "t"), key], Ok(("anthropic", "https://api.anthropic.com", 1)));
    let chat = ("ENNEAD_PROVIDER", "openai-chat");
    check(
        &[chat, ("OPENAI_API_KEY", "k"), key],
        Ok(("openai-chat", "https://api.openai.com/v1", 1)),
    );
    check(
        &[("ENNEAD_PROVIDER", "anthropic"), ("OPENAI_API_KEY", "k"), key],
        Ok(("anthropic", "https://api.anthropic.com", 1)),
    );
}

// REQ: MDL-8
#[test]
fn claude_in_the_clouds_is_read_from_variables() {
    let (bedrock, token) = (("ENNEAD_PROVIDER", "bedrock"), ("AWS_BEARER_TOKEN_BEDROCK", "token"));
    let here = "https://bedrock-runtime.us-east-1.amazonaws.com";
    check(&[bedrock, token], Ok(("bedrock", here, 1)));
    check(&[("CLAUDE_CODE_USE_BEDROCK", "1"), token], Ok(("bedrock", here, 1)));
    let there = "https://bedrock-runtime.eu-west-1.amazonaws.com";
    check(&[bedrock, token, ("AWS_REGION", "eu-west-1")], Ok(("bedrock", there, 1)));
    check(&[bedrock, token, ("AWS_DEFAULT_REGION", "eu-west-1")], Ok(("bedrock", there, 1)));
    let base = ("ANTHROPIC_BEDROCK_BASE_URL", "http://gateway:1/");
    check(&[bedrock, base], Ok(("bedrock", "http://gateway:1", 0)));
    check(
        &[("CLAUDE_CODE_USE_MANTLE", "true"), token],
        Ok(("bedrock-mantle", "https://bedrock-mantle.us-east-1.api.aws/anthropic", 1)),
    );

    let (vertex, token) = (("CLAUDE_CODE_USE_VERTEX", "1"), ("GOOGLE_OAUTH_ACCESS_TOKEN", "token"));
    let project = ("ANTHROPIC_VERTEX_PROJECT_ID", "p-1");
    let global = "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global";
    check(&[vertex, token, project], Ok(("vertex", global, 1)));
    let base = ("ANTHROPIC_VERTEX_BASE_URL", "http://gateway:1/v1/");
    let location = ("CLOUD_ML_REGION", "eu");
    check(
        &[vertex, base, project, location],
        Ok(("vertex", "http://gateway:1/v1/projects/p-1/locations/eu", 0)),
    );
    check(&[vertex, token], Err("needs ANTHROPIC_VERTEX_PROJECT_ID"));
    check(&[vertex, project], Err("needs GOOGLE_OAUTH_ACCESS_TOKEN, or ANTHROPIC_VERTEX_BASE"));
    check(&[bedrock], Err("needs AWS_BEARER_TOKEN_BEDROCK, or ANTHROPIC_BEDROCK_BASE_URL"));
    let elsewhere = ("AWS_REGION", "evil.example/#");
    let token = ("AWS_BEARER_TOKEN_BEDROCK", "token");
    check(&[bedrock, token, elsewhere], Err("AWS_REGION `evil.example/#` is not a name"));
}

// REQ: MDL-8
#[test]
fn several_providers_are_a_chain() {
    let environment = Environment::empty()
        .with("ENNEAD_PROVIDER", "bedrock, anthropic,bedrock")
        .with("AWS_BEARER_TOKEN_BEDROCK", "token")
        .with("ANTHROPIC_API_KEY", "key");
    let chain = Endpoint::chain_from_environment(&environment).unwrap();
    let names: Vec<&str> = chain.iter().map(|it| &*it.provider).collect();
    assert_eq!(names, ["bedrock", "anthropic"]);
    assert_eq!(Endpoint::from_environment(&environment).unwrap(), chain[0]);

    let without_key = environment.without("ANTHROPIC_API_KEY");
    let error = Endpoint::chain_from_environment(&without_key).unwrap_err();
    assert!(matches!(error, OptionError::NotSet { provider: "anthropic", .. }), "{error}");
}

// REQ: MDL-1
#[test]
fn errors_name_the_variable_to_set() {
    check(&[], Err("ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"));
    check(&[("ANTHROPIC_API_KEY", "")], Err("ANTHROPIC_BASE_URL"));
    check(&[("ENNEAD_PROVIDER", "openai-responses")], Err("OPENAI_API_KEY"));
    check(&[("ENNEAD_PROVIDER", "else")], Err("set ENNEAD_PROVIDER to one of"));
    check(&[("ANTHROPIC_API_KEY", "a\nb")], Err("ANTHROPIC_API_KEY has a line break"));
    let base = |text| [("ANTHROPIC_BASE_URL", text)];
    check(&base("nonsense"), Err("ANTHROPIC_BASE_URL `nonsense` is not a URL"));
    check(&base("ftp://a"), Err("scheme that is not supported"));
    check(&base("https://:80/"), Err("names no host"));
    check(&base("https://a/?b"), Err("query or a fragment"));
    let error = Endpoint::from_environment(
        &Environment::empty().with("ANTHROPIC_BASE_URL", "http://me:secret@a"),
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("ANTHROPIC_BASE_URL holds a name or password") && !error.contains("secret"),
        "{error}"
    );
}
