//! The listing of `runtime/src` is the pipeline: its numbered files are the contract.

use super::names;

/// The numbered entries of a folder, `word` before the number. Each is a file; those that also have
/// a folder are listed once.
#[track_caller]
fn check(dir: &str, word: &str, expected: &[&str]) {
    let found: Vec<String> = names(dir)
        .into_iter()
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| {
            name.strip_prefix(word).is_some_and(|rest| rest.starts_with(|c: char| c.is_numeric()))
        })
        .collect();
    assert_eq!(found, expected, "{dir}");
}

// REQ: TRN-1
#[test]
fn a_turn_has_nine_steps() {
    check(
        "runtime/src",
        "step",
        &[
            "step1_settings_resolution",
            "step2_state_initialization",
            "step3_context_assembly",
            "step4_context_shapers",
            "step5_model_call",
            "step6_tool_dispatch",
            "step7_permission_gate",
            "step8_tool_execution",
            "step9_stop_check",
        ],
    );
}

// REQ: TRN-1
#[test]
fn the_turn_is_in_the_order_of_its_steps() {
    check(
        "runtime/src/turn",
        "step",
        &[
            "step1_config_hooks",
            "step1_settings",
            "step2_prompt_hooks",
            "step2_state",
            "step3_appending",
            "step3_context",
            "step3_instruction_hooks",
            "step4_compaction",
            "step4_shaping",
            "step5_attempts",
            "step5_call_ids",
            "step5_carried_answer",
            "step5_media",
            "step5_model_call",
            "step5_remedy",
            "step5_spending",
            "step6_dispatch",
            "step7_approvals",
            "step7_classifier",
            "step7_denials",
            "step7_gate",
            "step7_mode",
            "step7_plan",
            "step7_question",
            "step8_batch_hooks",
            "step8_execution",
            "step8_synthesis",
            "step9_stop_check",
        ],
    );
}

// REQ: CTX-1
#[test]
fn a_context_has_nine_sources() {
    check(
        "runtime/src/step3_context_assembly",
        "source",
        &[
            "source1_system_prompt",
            "source2_environment",
            "source3_instructions",
            "source4_path_rules",
            "source5_auto_memory",
            "source6_tool_metadata",
            "source7_conversation_history",
            "source8_tool_results",
            "source9_compact_summaries",
        ],
    );
}

// REQ: SHP-1
#[test]
fn a_context_is_shaped_by_five_shapers() {
    check(
        "runtime/src/step4_context_shapers",
        "shaper",
        &[
            "shaper1_budget_reduction",
            "shaper2_snip",
            "shaper3_microcompact",
            "shaper4_context_collapse",
            "shaper5_auto_compact",
        ],
    );
}

// REQ: PRM-1
#[test]
fn a_call_passes_four_stages() {
    check(
        "runtime/src/step7_permission_gate",
        "stage",
        &[
            "stage1_prefilter",
            "stage2_pre_tool_use_hooks",
            "stage3_rule_evaluation",
            "stage4_permission_handler",
        ],
    );
}

// REQ: MDL-4, MDL-5
#[test]
fn a_failed_model_call_has_three_paths_of_recovery() {
    check(
        "runtime/src/recovery",
        "path",
        &["path1_output_escalation", "path2_reactive_compaction", "path3_prompt_too_long"],
    );
}
