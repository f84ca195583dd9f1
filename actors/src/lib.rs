//! Hosts many agents in one process: every session, turn, model call, tool call and sub-agent is an
//! actor under supervision.
//!
//! An embedder starts an [`Ennead`], opens sessions and runs prompts. Events report what happens while
//! it happens; transcripts keep what happened.
//!
//! ```
//! use ennead::{Endpoint, Ennead, SessionOptions};
//!
//! # let workspace = tempfile::tempdir()?;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let ennead = Ennead::simulated().await?;
//! let session = ennead.open(SessionOptions::new(workspace.path(), Endpoint::simulated())).await?;
//! let answer = session.prompt("What is 6 + 7?").await?.into_answer()?;
//! assert!(answer.text.starts_with("13"));
//! ennead.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Ennead::simulated`] answers from a playbook, without a network or a key. A real model is
//! [`Ennead::start`] with an [`Endpoint::messages`].
//!
//! # Concepts
//!
//! A **session** is a conversation with a model in a directory, with settings, permissions and a transcript
//! of its own. A [`SessionHandle`] reaches it; once closed it can be opened again by its id, in another
//! process as well.
//!
//! A **run** answers one prompt. It is a chain of **turns**: each calls the model once and carries out the
//! tools that the answer asks for; the run ends with the turn whose answer asks for none. A turn goes
//! through nine **steps**, of which a transcript records each: settings, state, context, shaping of the
//! context, the model call, requests of tools, the permission gate, execution, the stop check.
//!
//! A **sub-agent** is a session below another one, which a tool call starts; limits hold for the tree of
//! all of them. A **hook** is a program, or a function of an embedder, that is asked at fixed places and may
//! refuse. A **question** is a tool call that a person or an [`Approver`](permission::Approver) decides.
//!
//! A **tenant** groups sessions: limits on calls of the model are shared out fairly between tenants.
//!
//! # The order of events
//!
//! What is below an [`Event`] in this tree comes between its beginning and its end; where a step is named,
//! it comes in that step. Events that share a line come in any order.
//!
#![doc = concat!("```text\n", include_str!("front_door/order.txt"), "```")]
//!
//! # Modules
//!
//! The root holds what every embedder needs; the rest is sorted by role:
//!
//! * [`tool`]: tools of one's own, and MCP servers.
//! * [`permission`]: modes, trust, and who answers questions.
//! * [`model`]: how model servers are reached, limits on calls, and the messages of a conversation.
//! * [`settings`]: what a session reads from files.
//! * [`transcript`]: where transcripts are kept, looking at them, and checking them.
//! * [`testing`]: clocks and stops that a test controls, and the answers of the simulated model.
//! * `serve`: the server that hosts sessions over HTTP, with the feature of that name.
//! * [`data`]: the types of fields and results, which are read more often than named.
//!
//! # Features
//!
//! Each can be left out with `default-features = false`; without any, 117 crates are compiled.
//!
//! | Feature | Adds | Default |
//! |---|---|---|
//! | `http` | the transport that reaches model servers; without it [`Options::transport`] must be given, or models be in process | yes |
//! | `mcp` | servers of the Model Context Protocol | yes |
//! | `sandbox` | the sandbox of commands, on Linux, for a program that calls [`Ennead::serve_helper`]; without it a command that is to be confined is not run | yes |
//! | `schema` | checks of tool inputs against their schemas; without it they are parsed only | yes |
//! | `search` | the tools Glob and Grep | yes |
//! | `simulated` | the simulated model ([`Ennead::simulated`]) | yes |
//! | `vault` | the vault of redaction (docs/redaction.md): what the model is shown of secrets is kept sealed; without it nothing is kept | yes |
//! | `web` | the tool WebFetch; brings `http` | yes |
//! | `serve` | the server | no |
//!
//! The rules (nine steps, permissions, recovery, transcripts) are pure functions in the package
//! `ennead-runtime`; what tools do to the world is in `ennead-tools`; this package is everything that
//! waits. Those two promise no stability: what an embedder needs of them has its name here.
//! ARCHITECTURE.md describes the whole.
//!
#![doc = include_str!("front_door/runs.md")]

// From the outside to the inside: `handle` opens sessions on a `shard`, a `session` runs turns, a `turn`
// starts leaves. `services`, `storage`, `groundwork` and `world` serve them all; `options` and `ports` are
// what an embedder chooses and brings.
mod groundwork;
mod handle;
mod options;
mod ports;
mod services;
mod session;
mod shard;
mod storage;
mod turn;
mod world;

#[cfg(feature = "serve")]
pub mod serve;

pub use ennead_runtime::{
    event::Event,
    ids::SessionId,
    output::{ChannelPolicy, Payload, terminal::clean},
    ports::Clock,
    run::{
        PromptBlock, RunEnd, RunRequest,
        answer::{Answer, RunFailed},
        outcome::{RunError, RunOutcome},
    },
};

pub use crate::{
    handle::{SessionHandle, ennead::Ennead},
    options::{Endpoint, OptionError, Options, Placement, SessionOptions},
    ports::{
        channel::Channel,
        errors::{OpenError, StartError},
        events::Events,
    },
    world::{
        clock::{SystemClock, Timer},
        environment::Environment,
    },
};

/// Tools of one's own, and servers that bring tools.
///
#[doc = include_str!("front_door/tool.md")]
pub mod tool {
    pub use ennead_runtime::{
        mcp::config::ServerConfig,
        ports::{BoxFuture, Tool, ToolContext},
        run::agent_types::AgentType,
        tool::{Access, Concurrency, ToolEffect, ToolOutcome, ToolSpec},
    };
    pub use ennead_tools::{custom::CustomTool, registry::builtin_tools};

    pub use crate::options::McpLimits;
}

/// What a session may do: modes, rules, trust, and who answers questions.
///
#[doc = include_str!("front_door/permission.md")]
pub mod permission {
    pub use ennead_runtime::{
        approval::{PermissionAnswer, PolicyVerdict, Question, RuleUpdate},
        hook::HookEvent,
        permission::PermissionMode,
        step1_settings_resolution::trust::{SettingSources, Trust},
        step7_permission_gate::Permit,
    };

    pub use crate::ports::{
        approver::Approver,
        in_process_hook::{Hook, HookInput, HookReply},
        policy::PermissionPolicy,
    };
}

/// How model servers are reached, what holds calls back, and the messages of a conversation.
///
#[doc = include_str!("front_door/model.md")]
pub mod model {
    pub use ennead_runtime::{governor::limits::GovernorLimits, ports::Transport, tokens::Usage};

    pub use crate::{
        ports::in_process_model::{InProcessModel, ModelError, ModelEvent, ModelRequest},
        world::http_limits::HttpLimits,
    };
}

/// What a session reads from files, and where from.
///
#[doc = include_str!("front_door/settings.md")]
pub mod settings {
    pub use ennead_runtime::step1_settings_resolution::Durability;

    pub use crate::{options::Settings, world::source_files::SourceFiles};
}

/// Where transcripts are kept; looking at them, and checking them.
///
#[doc = include_str!("front_door/transcript.md")]
pub mod transcript {
    pub use crate::{
        ports::transcript_store::{FileStore, TranscriptLog, TranscriptStore},
        storage::transcripts::{trace, verify},
    };
}

/// For tests of one's own: clocks and stops that a test controls, a transcript store that fails as planned and,
/// with the feature `simulated`, the answers of the simulated model.
///
#[doc = include_str!("front_door/testing.md")]
pub mod testing {
    #[cfg(feature = "simulated")]
    pub use ennead_simulated::Playbook;

    pub use crate::{
        options::Breakpoints, ports::transcript_store::FaultyStore, world::clock::ManualClock,
    };
}

/// Types of fields, variants, parameters and results of the above: what programs read, and seldom have to
/// name. Those that a port of one's own needs are here, too: the [`Timestamp`](data::Timestamp) of a clock,
/// the [`SourceTexts`](data::SourceTexts) of a source, the [`StoreError`](data::StoreError) of a store, the
/// [`ToolErrorKind`](data::ToolErrorKind) of a tool that fails.
pub mod data {
    pub use ennead_runtime::{
        approval::{
            AnswerError, AnsweredBy, ModeError, QuestionCounts, QuestionKey, RuleDestination,
            UpdateAct,
        },
        block::{Block, BlockKind, NotABlock},
        catalogue::{
            Catalogue, Disabling, Effort, LongPrompt, ModelFacts, Money, PlatformIds, Prices,
            Sampling, ThinkingDisplay, ThinkingSupport,
        },
        cost::{Account, Accounts, CostLedger},
        digest::{Digest, NotADigest},
        event::{Numbered, RecordedMessage},
        governor::{
            ParkReason,
            limits::{BreakerLimits, RetryLimits},
        },
        hook::BadMatcher,
        ids::{AgentId, ApprovalId, EntryId, RunId, ShellId, TenantId, ToolName, ToolUseId},
        input_schema::TooComplex,
        mcp::{
            config::{Address, ServerProgram, ServerTransport},
            spec::CallLimits,
            state::ServerState,
        },
        message::{Message, MessageKind, Messages, Role},
        output::{Break, ChunkPolicy, Chunking, Delivery, OutputSettings, Piece, ToolResult},
        permission::{RuleKind, RuleText, Scope},
        ports::{
            AgentOrder, AgentPlace, AgentReport, AgentStatus, Cancel, CommittedOutcome,
            HostProcess, Progress, ReportProgress, ResponseBody, SpawnAgent, TransportError,
            WireRequest, WireResponse, WorkGuard,
            shells::{Detached, ShellState, ShellStatus},
        },
        recovery::chain::FallbackUsed,
        redaction::Redactor,
        run::{InvalidRequest, Sender, agent_types::BadAgent, outcome::Denial},
        sandbox::Sandbox,
        step::Step,
        step1_settings_resolution::{
            Certificates, LayerText, ShellSettings, WorktreeBase, trust::UnknownSource,
        },
        step3_context_assembly::{InstructionFile, PathRule, SourceTexts},
        step5_model_call::{
            cache_watch::{DropReason, PromptCacheEvent},
            wire_format::WireFormat,
        },
        step7_permission_gate::{CommandClass, PathKind, PermitError, ResolvedPath, rule::BadRule},
        time::Timestamp,
        tokens::Tokens,
        tool::{
            FileSeen, Todo, TodoStatus, ToolCall, ToolErrorKind, ToolMemory, ToolNote, Truncation,
        },
        transcript::{
            audit::{Forked, Verified, Violation, ViolationKind},
            entry::{AnswerFields, Boundary},
            replay::ReplayError,
            seal::Head,
        },
        wire_body::{BodyPieces, WireBody},
    };
    #[cfg(feature = "simulated")]
    pub use ennead_simulated::PlaybookError;
    pub use ennead_tools::{
        custom::{CustomToolBuilder, CustomToolError},
        schema::SchemaError,
        source_file::ReadError,
        web_search::{SearchHit, SearchQuery},
    };

    #[cfg(feature = "serve")]
    pub use crate::serve::tokens::TokenEntry;
    #[cfg(feature = "http")]
    pub use crate::world::http::HttpSetupError;
    pub use crate::{
        groundwork::{
            directory::{ActorKind, Directory, Live, ParkedCall},
            mailbox::Gauge,
        },
        handle::trust::RecordError,
        options::GoOn,
        ports::{
            events::{AllEvents, EventsMissed, SessionEvent},
            in_process_model::{ModelEvents, OfferedTool},
            transcript_store::{
                Holder, Lease, StoreAccess, StoreError, SyncWork, guard::UnsafeTranscripts,
            },
        },
        services::mcp_server::McpServerStatus,
        session::Status,
        storage::transcripts::{Checked, TranscriptError},
        world::source_files::SessionDirs,
    };
}

/// What the command and the tests of this project reach by name. Promises nothing.
#[doc(hidden)]
pub mod internal {
    #[cfg(feature = "serve")]
    pub use crate::serve::page::{PAGE_INDEX, PAGE_SCRIPTS, PAGE_STYLE};
    #[cfg(feature = "vault")]
    pub use crate::storage::vault::opened::{new_vault_key, public_vault_key};
    #[cfg(feature = "http")]
    pub use crate::world::http::Http;
    #[cfg(feature = "simulated")]
    pub use crate::world::simulated::{
        EMBEDDED, RequestLog, SimulatedTransport, Simulator, embedded, parse_in,
    };
    pub use crate::{
        groundwork::mailbox::{Admitted, Mailbox, Refused, Slot},
        handle::{
            ennead::model_variables::with_model_variables,
            server_tools::ServerTools,
            trust::{unset_until_trusted, waiting_for_trust},
        },
        options::{GoOn, with_lookup, with_plugin_servers},
        ports::{
            events::{CAPACITY, EventHub, MAX_BYTES},
            transcript_store::{guard::prepare, layout::Layout},
        },
        storage::{
            archive::{
                Archive, ArchiveMsg, ArchiveSetup, OpenOutcome, OpenTranscript, WriterHandle,
            },
            redaction::Redaction,
            transcript_writer::{Append, Recorded, WriteError},
        },
        world::{
            agent_files::agent_files,
            local_files::LocalFiles,
            plugin_files::{Plugin, plugin_files},
            real_paths::look_up,
            skill_files::skill_files,
            source_files::{Fingerprints, SourceLookup},
        },
    };
}

/// Makes the Rust of README.md a test: it must compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub(crate) struct Readme;
