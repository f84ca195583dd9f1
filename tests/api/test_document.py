"""The document of a running server, judged by a public validator."""

from openapi_spec_validator import OpenAPIV31SpecValidator


# REQ: SUR-5
def test_document_is_valid(document):
    errors = [str(it.message) for it in OpenAPIV31SpecValidator(document).iter_errors()]
    assert errors == []


# REQ: SUR-5
def test_every_operation_has_a_name_of_its_own_and_a_problem(document):
    operations = [it for path in document["paths"].values() for it in path.values()]
    names = [it["operationId"] for it in operations]
    assert len(names) == len(set(names)) and len(names) >= 19
    for operation in operations:
        for status, response in operation["responses"].items():
            if status == "default" or int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], operation["operationId"]
