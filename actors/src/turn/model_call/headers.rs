//! The headers of a request to a model server.

use std::sync::Arc;

/// Joins the headers of a provider and those of one request. Betas of both are one list, since some servers read only
/// the first header of a name.
pub(super) fn with_headers(
    endpoint: &Arc<[(String, String)]>,
    request: &[(String, String)],
) -> Arc<[(String, String)]> {
    if request.is_empty() {
        return Arc::clone(endpoint);
    }
    let mut headers = endpoint.to_vec();
    for (name, value) in request {
        match headers.iter_mut().find(|it| it.0.eq_ignore_ascii_case(name)) {
            Some((_, values)) => {
                for one in value.split(',').map(str::trim) {
                    if values.split(',').all(|it| it.trim() != one) {
                        *values = format!("{values},{one}");
                    }
                }
            }
            None => headers.push((name.clone(), value.clone())),
        }
    }
    headers.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn betas_of_provider_and_request_are_one_header() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let endpoint: Arc<[_]> = [pair("anthropic-beta", "a"), pair("x", "y")].into();
        let both = with_headers(&endpoint, &[pair("anthropic-beta", "b"), pair("z", "w")]);
        let all = [pair("anthropic-beta", "a,b"), pair("x", "y"), pair("z", "w")];
        assert_eq!(*both, all);
        assert_eq!(with_headers(&endpoint, &[]), endpoint);
    }
}
