//! Calls of clients of clusters, clouds and forges that only ask; data.
//!
//! Sources: the manuals of gh 2.50, helm 3, aws-cli 2, gcloud 480 and az 2.60.

/// A client, and how its calls are told apart.
struct Client {
    name: &'static str,
    /// Options whose value is the next word, in front of the words that count.
    valued: &'static [&'static str],
    /// Words with which a call begins that only asks.
    asks: &'static [&'static [&'static str]],
    /// What is done is one of the words, and these ask.
    verbs: &'static [&'static str],
    /// Words that may be in front of these; any one if there are none, which names a service.
    groups: &'static [&'static str],
    /// Options with which a call does more than ask.
    otherwise: &'static [&'static str],
}

/// The clients whose calls are looked into; a call of any other client is dangerous.
const CLIENTS: [Client; 5] = [
    Client {
        name: "gh",
        valued: &["-R", "--repo"],
        asks: &[
            &["status"],
            &["search"],
            &["auth", "status"],
            &["run", "watch"],
            &["pr", "list"],
            &["pr", "view"],
            &["pr", "diff"],
            &["pr", "checks"],
            &["pr", "status"],
            &["issue", "list"],
            &["issue", "view"],
            &["issue", "status"],
            &["run", "list"],
            &["run", "view"],
            &["release", "list"],
            &["release", "view"],
            &["repo", "list"],
            &["repo", "view"],
            &["workflow", "list"],
            &["workflow", "view"],
            &["gist", "list"],
            &["gist", "view"],
            &["label", "list"],
            &["cache", "list"],
            &["project", "list"],
            &["project", "view"],
            &["secret", "list"],
            &["variable", "list"],
            &["config", "list"],
            &["config", "get"],
            &["alias", "list"],
            &["extension", "list"],
        ],
        verbs: &[],
        groups: &[],
        // A browser is started.
        otherwise: &["--web", "-w"],
    },
    Client {
        name: "helm",
        valued: &["-n", "--namespace"],
        asks: &[
            &["list"],
            &["ls"],
            &["status"],
            &["history"],
            &["get"],
            &["version"],
            &["template"],
            &["lint"],
            &["search"],
            &["show"],
            &["env"],
            &["verify"],
            &["repo", "list"],
            &["repo", "ls"],
            &["plugin", "list"],
            &["dependency", "list"],
        ],
        verbs: &[],
        groups: &[],
        otherwise: &[
            "--output-dir",
            "--post-renderer",
            "--kubeconfig",
            "--kube-context",
            "--dependency-update",
        ],
    },
    Client {
        name: "aws",
        valued: &["--profile", "--region", "--output", "--query"],
        asks: &[&["s3", "ls"], &["sts", "get-caller-identity"], &["configure", "list"]],
        verbs: &["describe-", "list-"],
        groups: &[],
        otherwise: &["--endpoint-url", "--cli-input-json"],
    },
    Client {
        name: "gcloud",
        valued: &["--project", "--format", "--account", "--configuration"],
        asks: &[&["version"], &["info"]],
        verbs: &["list", "describe"],
        groups: &[
            "app",
            "artifacts",
            "auth",
            "backend-services",
            "beta",
            "builds",
            "clusters",
            "components",
            "compute",
            "config",
            "configurations",
            "container",
            "databases",
            "disks",
            "dns",
            "domains",
            "firewall-rules",
            "functions",
            "iam",
            "images",
            "instances",
            "jobs",
            "keys",
            "logging",
            "logs",
            "machine-types",
            "managed-zones",
            "networks",
            "node-pools",
            "operations",
            "organizations",
            "projects",
            "pubsub",
            "regions",
            "repositories",
            "revisions",
            "roles",
            "run",
            "secrets",
            "service-accounts",
            "services",
            "snapshots",
            "sql",
            "subnets",
            "subscriptions",
            "topics",
            "versions",
            "zones",
        ],
        otherwise: &["--log-http", "--flags-file"],
    },
    Client {
        name: "az",
        valued: &["-o", "--output", "--query", "--subscription"],
        asks: &[&["version"]],
        verbs: &["list", "show"],
        groups: &[
            "account",
            "acr",
            "ad",
            "aks",
            "app",
            "appservice",
            "container",
            "cosmosdb",
            "disk",
            "functionapp",
            "group",
            "image",
            "keyvault",
            "network",
            "nic",
            "nsg",
            "plan",
            "public-ip",
            "repository",
            "resource",
            "server",
            "sp",
            "sql",
            "storage",
            "subnet",
            "user",
            "vm",
            "vmss",
            "vnet",
            "webapp",
        ],
        otherwise: &[],
    },
];

/// Returns whether a call of such a client only asks.
pub(super) fn reads(name: &str, args: &[&str]) -> bool {
    let Some(client) = CLIENTS.iter().find(|it| it.name == name) else { return false };
    let is_otherwise =
        |it: &&str| client.otherwise.contains(&it.split_once('=').map_or(*it, |it| it.0));
    let words = client.words(args);
    let is_verb = |it: &&str| {
        client.verbs.iter().any(|verb| it == verb || verb.ends_with('-') && it.starts_with(verb))
    };
    // A thing may be called like a verb, so what is in front of the verb has to be known.
    let has_verb = || {
        let at = words.iter().position(is_verb);
        at.is_some_and(|at| match client.groups {
            [] => at == 1,
            groups => at > 0 && words[..at].iter().all(|it| groups.contains(it)),
        })
    };
    let asks = client.asks.iter().any(|it| words.starts_with(it)) || has_verb();
    asks && !args.iter().any(is_otherwise)
}

impl Client {
    /// The words in front of the options that do not come first.
    fn words<'a>(&self, args: &[&'a str]) -> Vec<&'a str> {
        let mut found = Vec::new();
        let mut all = args.iter();
        while let Some(arg) = all.next() {
            if self.valued.contains(arg) {
                all.next();
            } else if !arg.starts_with('-') {
                found.push(*arg);
            } else if !found.is_empty() {
                break;
            }
        }
        found
    }
}
