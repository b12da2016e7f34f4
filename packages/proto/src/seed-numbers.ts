/**
 * Names and numbers that the seeds give, copied from them: per message or enum, `name=number`. Kept apart from the sources
 * so that a slip in a .proto file cannot change both.
 */
export const seedFields: Readonly<Record<string, string>> = {
  // Seed 000 §1.
  'aiserver.v1.CloudAgentState': `conversation_state=1 num_prior_interaction_updates=2 pr_body=3 summary=4 branch_name=5
    pr_url=6 last_interaction_update_offset_key=7 agent_name=8 starting_commit=9 base_branch=10 config=11
    local_state_branch=12 original_prompt_blob_id=13 repository_info_blob_id=14 original_conversation_action_blob_id=15
    video_annotations_blob_id=16 last_user_turn_commit=17 last_followup_source=18 continue_rebase=19
    turn_start_todo_ids=20`,
  // Seed 000 §2.
  'agent.v1.InteractionUpdate': `text_delta=1 tool_call_started=2 tool_call_completed=3 thinking_delta=4
    thinking_completed=5 user_message_appended=6 partial_tool_call=7 token_delta=8 summary=9 summary_started=10
    summary_completed=11 shell_output_delta=12 heartbeat=13 turn_ended=14 tool_call_delta=15 step_started=16
    step_completed=17`,
  'agent.v1.TextDeltaUpdate': 'text=1',
  'agent.v1.ToolCallStartedUpdate': 'call_id=1 tool_call=2 model_call_id=3',
  'agent.v1.ToolCallCompletedUpdate': 'call_id=1 tool_call=2 model_call_id=3',
  'agent.v1.ToolCallDeltaUpdate': 'call_id=1 tool_call_delta=2 model_call_id=3',
  'agent.v1.PartialToolCallUpdate': 'call_id=1 tool_call=2 args_text_delta=3 model_call_id=4',
  'agent.v1.ThinkingDeltaUpdate': 'text=1',
  'agent.v1.ThinkingCompletedUpdate': 'thinking_duration_ms=1',
  'agent.v1.TokenDeltaUpdate': 'tokens=1',
  'agent.v1.StepStartedUpdate': 'step_id=1',
  'agent.v1.StepCompletedUpdate': 'step_id=1 step_duration_ms=2',
  'agent.v1.ShellOutputDeltaUpdate': 'stdout=1 stderr=2 exit=3 start=4',
  // Seed 000 §4.
  'aiserver.v1.StreamConversationResponse': `initial_state=3 interaction_update_with_offset=4
    cloud_agent_state_with_id_and_offset=5 workflow_status_with_offset=6 prefetched_blobs=7`,
  // Seed 001.
  'aiserver.v1.AddAsyncFollowupBackgroundComposerRequest': `bc_id=1 followup=2 synchronous=3 rich_followup=4
    followup_message=5 model_details=6 followup_source=7 continue_rebase=8 plan_followup_type=9
    followup_conversation_action=10`,
  'aiserver.v1.StreamConversationRequest': `bc_id=1 offset_key=2 filter_heavy_step_data=3
    should_send_prefetched_blobs_first=4 pre_fetched_blob_ids=5`,
  'aiserver.v1.MakePRBackgroundComposerRequest': 'bc_id=1 workflow_id=2',
  'aiserver.v1.MakePRBackgroundComposerResponse': 'pr_url=1 branch_name=2 has_commits=3 owner=4 repo=5',
}

/** Wire types where a seed gives them. `?` marks `optional`, `*` repeated. */
export const seedTypes: Readonly<Record<string, string>> = {
  'aiserver.v1.CloudAgentState': `num_prior_interaction_updates:uint32 pr_body:bytes summary:bytes branch_name:bytes
    pr_url:bytes last_interaction_update_offset_key:string agent_name:bytes starting_commit:string? base_branch:string?
    config:bytes local_state_branch:string? original_prompt_blob_id:bytes repository_info_blob_id:bytes
    original_conversation_action_blob_id:bytes video_annotations_blob_id:bytes last_user_turn_commit:string?
    continue_rebase:bool? turn_start_todo_ids:string*`,
  'aiserver.v1.CloudAgentStatePersistedMetadata':
    'cloud_agent_state_blob_id:bytes offset_key:string timestamp_ms:int64',
  'agent.v1.ThinkingCompletedUpdate': 'thinking_duration_ms:int32',
  'agent.v1.TokenDeltaUpdate': 'tokens:int32',
  'agent.v1.StepStartedUpdate': 'step_id:uint64',
  'agent.v1.StepCompletedUpdate': 'step_id:uint64 step_duration_ms:int64',
  'aiserver.v1.StreamConversationRequest': `bc_id:string offset_key:string? filter_heavy_step_data:bool
    should_send_prefetched_blobs_first:bool pre_fetched_blob_ids:bytes*`,
  'aiserver.v1.ErrorDetails': 'is_expected:bool?',
}

/** Names that a seed gives without numbers; ours are listed in docs/protocol-numbers.md. */
export const seedNames: Readonly<Record<string, string>> = {
  'aiserver.v1.CloudAgentState': `original_request_start_unix_ms initial_turn_latency_reported agent_session_id
    kickoff_message_id grind_mode_config commits commit_count user_facing_error_details initial_source
    num_completed_turns`,
  'aiserver.v1.CloudAgentStatePersistedMetadata':
    'cloud_agent_state_blob_id offset_key timestamp_ms workflow_status version',
  'aiserver.v1.InitialState': 'blob_id cloud_agent_state pre_fetched_blobs workflow_status',
  'aiserver.v1.InteractionUpdateWithOffset': 'offset_key interaction_update',
  'aiserver.v1.StartBackgroundComposerFromSnapshotRequest': `snapshot_name_or_id devcontainer_starting_point prompt
    rich_prompt model_details repository_info source conversation_history bc_id conversation_action agent_session_id
    grind_mode_config`,
  'aiserver.v1.ErrorDetails': 'error details is_expected',
}

/** Enum values with the prefix taken off. */
export const seedEnums: Readonly<Record<string, string>> = {
  'aiserver.v1.BackgroundComposerStatus': 'UNSPECIFIED=0 RUNNING=1 FINISHED=2 ERROR=3 CREATING=4 EXPIRED=5',
  'aiserver.v1.BackgroundComposerSource': `UNSPECIFIED=0 EDITOR=1 SLACK=2 WEBSITE=3 LINEAR=4 IOS_APP=5 API=6 GITHUB=7
    CLI=8 GITHUB_CI_AUTOFIX=9 GITLAB=10 ENVIRONMENT_SETUP_WEB=11 GRIND_WEB=12`,
  'aiserver.v1.CloudAgentWorkflowStatus': 'UNSPECIFIED=0 RUNNING=1 IDLE=2 ERROR=3 ARCHIVED=4 EXPIRED=5',
  'aiserver.v1.EnsembleStatus': 'UNSPECIFIED=0 PARENT=1 CHILD=2',
  'aiserver.v1.PlanFollowupType': 'UNSPECIFIED=0 PLAN=1 EXECUTE=2',
  'aiserver.v1.PersistedMetadataVersion': 'UNSPECIFIED=0 1=1',
  'aiserver.v1.ParallelAgentWorkflowStatusUpdate.Phase': `UNSPECIFIED=0 STARTING=1 CHILDREN_RUNNING=2 GATHERING=3
    SYNTHESIZING=4 COMPLETED=5 ERROR=6`,
  // Seed 002.
  'aiserver.v1.ErrorType': `UNSPECIFIED=0 BAD_API_KEY=1 NOT_LOGGED_IN=2 FREE_USER_RATE_LIMIT_EXCEEDED=7
    PRO_USER_RATE_LIMIT_EXCEEDED=8 USER_ABORTED_REQUEST=21 TIMEOUT=25 RESOURCE_EXHAUSTED=41 CONVERSATION_TOO_LONG=43
    RATE_LIMITED=50 HOOKS_BLOCKED=53`,
}
