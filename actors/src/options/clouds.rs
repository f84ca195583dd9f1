//! Claude at other providers: their addresses and how they are logged in to.
//!
//! The hosts follow rules of the clouds, not of a wire format.

use std::sync::Arc;

use ennead_runtime::step5_model_call::wire_format::WireFormat;

use super::Endpoint;

impl Endpoint {
    /// Names Claude on the older Bedrock of a region (`us-east-1`), with a bearer token (`AWS_BEARER_TOKEN_BEDROCK`).
    /// Models have the names of Bedrock, or of an inference profile.
    pub fn bedrock(region: &str, token: &str) -> Self {
        Self {
            provider: "bedrock".into(),
            format: WireFormat::BedrockInvoke,
            base: format!("https://bedrock-runtime.{region}.amazonaws.com").into(),
            headers: bearer(token),
            model: None,
        }
    }

    /// Names Claude on the newer Bedrock of a region, which speaks the Messages API, with a bearer token as in
    /// [`Endpoint::bedrock`]. Models are `anthropic.` and the name that they have everywhere.
    pub fn bedrock_mantle(region: &str, token: &str) -> Self {
        let mut headers = bearer(token).to_vec();
        headers.push(("anthropic-version".to_owned(), "2023-06-01".to_owned()));
        Self {
            provider: "bedrock-mantle".into(),
            format: WireFormat::AnthropicMessages,
            base: format!("https://bedrock-mantle.{region}.api.aws/anthropic").into(),
            headers: headers.into(),
            model: None,
        }
    }

    /// Names Claude on Vertex, in a project and a location: `global`, `us`, `eu`, or a region. The token is one of
    /// Google OAuth. It expires after an hour; give a new endpoint then.
    pub fn vertex(project: &str, location: &str, token: &str) -> Self {
        let host = match location {
            "global" => "aiplatform.googleapis.com".to_owned(),
            "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
            region => format!("{region}-aiplatform.googleapis.com"),
        };
        let base = format!("https://{host}/v1/projects/{project}/locations/{location}");
        Self {
            provider: "vertex".into(),
            format: WireFormat::VertexRawPredict,
            base: base.into(),
            headers: bearer(token),
            model: None,
        }
    }
}

fn bearer(token: &str) -> Arc<[(String, String)]> {
    let json = "application/json".to_owned();
    [("content-type".to_owned(), json), ("authorization".to_owned(), format!("Bearer {token}"))]
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(endpoint: &Endpoint, model: &str, url: &str) {
        assert_eq!(endpoint.format.url(&endpoint.base, model, true), url);
        let header = |wanted: &str| {
            endpoint.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| &**value)
        };
        assert_eq!(header("authorization"), Some("Bearer t"));
        assert_eq!(header("x-api-key"), None);
    }

    // REQ: MDL-8
    #[test]
    fn addresses_are_those_of_the_region_or_location() {
        check(
            &Endpoint::bedrock("us-east-1", "t"),
            "anthropic.claude-opus-4-6-v1",
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-opus-4-6-v1/invoke-with-response-stream",
        );
        check(
            &Endpoint::bedrock_mantle("eu-west-1", "t"),
            "anthropic.claude-opus-5",
            "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages",
        );
        for (location, host) in [
            ("global", "aiplatform.googleapis.com"),
            ("eu", "aiplatform.eu.rep.googleapis.com"),
            ("us", "aiplatform.us.rep.googleapis.com"),
            ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ] {
            let url = format!(
                "https://{host}/v1/projects/p/locations/{location}/publishers/anthropic/models/claude-opus-5:streamRawPredict"
            );
            check(&Endpoint::vertex("p", location, "t"), "claude-opus-5", &url);
        }
    }
}
