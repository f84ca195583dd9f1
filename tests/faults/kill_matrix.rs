//! Whatever actor is killed, at whatever step: the run ends in order, the session goes on, nobody
//! else notices, and the transcript tells the truth.
//!
//! The cases are generated from all steps and all kinds of actors. A pair that cannot be is listed
//! with the reason, and the test fails when a pair is neither possible nor listed.

mod case;
mod plan;

use case::run;
use ennead::data::{ActorKind, Step};
use plan::{impossible, plan};

/// All cases of one kind, one after another.
#[track_caller]
fn check(kind: ActorKind) {
    for step in Step::ALL {
        match (plan(step, kind), impossible(step, kind)) {
            (Some(plan), None) => run(step, kind, &plan),
            (None, Some(_)) => {}
            (Some(_), Some(reason)) => panic!("{kind:?} at {step:?} is possible, not: {reason}"),
            (None, None) => panic!("{kind:?} at {step:?} is neither planned nor impossible"),
        }
    }
}

macro_rules! kinds {
    ($($name:ident $kind:ident)*) => {
        $(
            // REQ: RUN-1, RUN-2, TRN-11, SES-3, AGT-3
            #[test]
            fn $name() {
                check(ActorKind::$kind);
            }
        )*

        #[test]
        fn matrix_is_whole() {
            assert_eq!([$(ActorKind::$kind),*], ActorKind::ALL);
        }
    };
}

kinds! {
    kill_shard Shard
    kill_governor Governor
    kill_mcp_server McpServer
    kill_mcp_connection McpConnection
    kill_mcp_waiter McpWaiter
    kill_archive Archive
    kill_transcript_writer TranscriptWriter
    kill_session Session
    kill_sub_agent SubAgent
    kill_hook_runner HookRunner
    kill_hook_execution HookExecution
    kill_shell_process ShellProcess
    kill_turn_supervisor TurnSupervisor
    kill_source_reader SourceReader
    kill_shaper_stage ShaperStage
    kill_model_call ModelCall
    kill_gate_worker GateWorker
    kill_tool_dispatcher ToolDispatcher
    kill_tool_executor ToolExecutor
    kill_approval Approval
    kill_turn_ending TurnEnding
    kill_run_timer RunTimer
    kill_file_watcher FileWatcher
}
