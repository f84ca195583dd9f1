//! Which actor can be met at which step, how it is met there, and what its end means.

use ennead::{
    RunEnd,
    data::{ActorKind, Step},
};

/// How a victim is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meet {
    /// The turn is at the breakpoint of the step.
    Breakpoint,
    /// It waits at a barrier.
    Barrier(Where),
    /// A grandchild of its shell lives.
    Process,
    /// At birth: it does not wait for anything.
    Birth,
    /// At birth, after an interrupt at the breakpoint of the step.
    Interrupt,
}

/// Which barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    Settings,
    Sources,
    Stream,
    Approval,
    Tool,
}

/// What the end of a victim means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The run ends with this, and the session goes on.
    Ends(RunEnd),
    /// The session ends; it can be opened again.
    SessionEnds,
    /// All sessions of the shard end.
    ShardEnds,
}

/// One case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) prompt: &'static str,
    pub(super) meet: Meet,
    pub(super) meaning: Meaning,
    /// Hooks of these events run; they end at once.
    pub(super) hooks: &'static [&'static str],
}

const GOES_ON: Meaning = Meaning::Ends(RunEnd::NoPendingTools);

fn case(prompt: &'static str, meet: Meet, meaning: Meaning) -> Option<Plan> {
    Some(Plan { prompt, meet, meaning, hooks: &[] })
}

/// How to kill this kind at this step; `None` when it cannot live then.
pub(super) fn plan(step: Step, kind: ActorKind) -> Option<Plan> {
    use ActorKind as K;
    use Meet::{Barrier, Birth, Breakpoint, Interrupt, Process};
    use Step as S;
    const TOOLS: &str = "use echo echo";
    match (kind, step) {
        (K::Shard | K::Archive, _) => case(TOOLS, Breakpoint, Meaning::ShardEnds),
        (K::Session, _) => case(TOOLS, Breakpoint, Meaning::SessionEnds),
        (K::TranscriptWriter | K::Governor | K::RunTimer | K::McpWaiter, _) => {
            case(TOOLS, Breakpoint, GOES_ON)
        }
        (K::FileWatcher, _) => {
            let plan = case(TOOLS, Breakpoint, GOES_ON)?;
            Some(Plan { hooks: &["FileChanged"], ..plan })
        }
        // Its server is shared by all sessions and there at every step, also with no call of it.
        (K::McpServer | K::McpConnection, _) => {
            case("use mcp__srv__echo echo", Breakpoint, GOES_ON)
        }
        (K::TurnSupervisor, _) => case(TOOLS, Breakpoint, Meaning::Ends(RunEnd::Crashed)),
        (K::HookRunner, _) => {
            let plan = case(TOOLS, Breakpoint, GOES_ON)?;
            Some(Plan { hooks: &["PreToolUse"], ..plan })
        }
        (K::TurnEnding, _) => case(TOOLS, Interrupt, Meaning::Ends(RunEnd::Interrupted)),
        (K::SourceReader, S::SettingsResolution) => {
            case(TOOLS, Barrier(Where::Settings), Meaning::Ends(RunEnd::Error))
        }
        (K::SourceReader, S::ContextAssembly) => case(TOOLS, Barrier(Where::Sources), GOES_ON),
        (K::ShaperStage, S::ContextShaping) => case("loop", Birth, GOES_ON),
        // The collapse is lost, and there is nothing to sum up.
        (K::ShaperStage, S::ModelCall) => {
            case("overflow", Birth, Meaning::Ends(RunEnd::PromptTooLong))
        }
        (K::ModelCall, S::ContextShaping) => case("loop", Birth, GOES_ON),
        (K::ModelCall, S::ModelCall) => case("held use echo", Barrier(Where::Stream), GOES_ON),
        (K::ToolDispatcher, S::PermissionGate | S::ToolExecution | S::StopCheck) => {
            case(TOOLS, Breakpoint, GOES_ON)
        }
        (K::GateWorker, S::PermissionGate) => case("use look", Birth, GOES_ON),
        (K::Approval, S::PermissionGate) => case("use asked", Barrier(Where::Approval), GOES_ON),
        (K::ToolExecutor, S::ToolExecution) => case("use wait echo", Barrier(Where::Tool), GOES_ON),
        (K::ShellProcess, S::ToolExecution) => case("run", Process, GOES_ON),
        (K::SubAgent, S::ToolExecution) => case("delegate use wait", Barrier(Where::Tool), GOES_ON),
        (K::HookExecution, S::ContextShaping) => {
            Some(Plan { hooks: &["PreCompact"], ..case("loop", Birth, GOES_ON)? })
        }
        (K::HookExecution, S::PermissionGate) => {
            Some(Plan { hooks: &["PreToolUse"], ..case(TOOLS, Birth, GOES_ON)? })
        }
        (K::HookExecution, S::ToolExecution) => {
            Some(Plan { hooks: &["PostToolUse"], ..case(TOOLS, Birth, GOES_ON)? })
        }
        (K::HookExecution, S::StopCheck) => {
            Some(Plan { hooks: &["Stop"], ..case(TOOLS, Birth, GOES_ON)? })
        }
        _ => None,
    }
}

/// Why a kind cannot live at a step.
pub(super) fn impossible(step: Step, kind: ActorKind) -> Option<&'static str> {
    let found = IMPOSSIBLE.iter().find(|(of, at, _)| *of == kind && at.contains(step));
    found.map(|(.., reason)| *reason)
}

/// Steps of a turn.
enum Steps {
    /// The steps of this list.
    At(&'static [Step]),
    /// All steps but those of this list.
    Outside(&'static [Step]),
}

impl Steps {
    fn contains(&self, step: Step) -> bool {
        match self {
            Self::At(steps) => steps.contains(&step),
            Self::Outside(steps) => !steps.contains(&step),
        }
    }
}

const IMPOSSIBLE: &[(ActorKind, Steps, &str)] = {
    use ActorKind as K;
    use Step as S;
    use Steps::{At, Outside};
    &[
        (
            K::SubAgent,
            Outside(&[S::ToolExecution]),
            "a call of the Agent tool waits for it, and calls run in step 8",
        ),
        (
            K::HookExecution,
            At(&[
                S::SettingsResolution,
                S::StateInitialization,
                S::ContextAssembly,
                S::ToolDispatch,
            ]),
            "no event fires there",
        ),
        (
            K::HookExecution,
            At(&[S::ModelCall]),
            "a reactive compaction runs its stage, and only then may fire PreCompact; see step 4",
        ),
        (
            K::SourceReader,
            Outside(&[S::SettingsResolution, S::ContextAssembly]),
            "settings are read in step 1, sources in step 3",
        ),
        (
            K::ShaperStage,
            Outside(&[S::ContextShaping, S::ModelCall]),
            "stages run in step 4, and in step 5 as a remedy",
        ),
        (
            K::ModelCall,
            Outside(&[S::ContextShaping, S::ModelCall]),
            "the model is asked in step 5, and in step 4 for a summary",
        ),
        (K::GateWorker, Outside(&[S::PermissionGate]), "paths are looked at in step 7"),
        (K::Approval, Outside(&[S::PermissionGate]), "permissions are asked for in step 7"),
        (
            K::ToolDispatcher,
            Outside(&[S::PermissionGate, S::ToolExecution, S::StopCheck]),
            "step 6 spawns it and goes on to step 7 without waiting for anything",
        ),
        (K::ToolExecutor, Outside(&[S::ToolExecution]), "calls run in step 8"),
        (
            K::ShellProcess,
            Outside(&[S::ToolExecution]),
            "a call waits for it, and calls run in step 8",
        ),
    ]
};
