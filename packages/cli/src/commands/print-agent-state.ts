import { AgentExtensionsSchema, type AgentExtensions } from '@tutti/proto'
import { workflowStatusFromWire } from '@tutti/protocol/wire'
import { agentStatusText } from '../output/agent-lines.ts'
import { messageJson } from '../output/message-json.ts'
import { isTextOutput, type Output } from '../output/output.ts'

/** The answer of a command that changed an agent's state. */
export function printAgentState(
  output: Output,
  bcId: string,
  workflowStatus: number,
  state: AgentExtensions | undefined,
): void {
  if (isTextOutput(output)) return output.line(`${bcId}  ${agentStatusText(workflowStatus, state)}`)
  output.json({
    bc_id: bcId,
    workflow_status: workflowStatusFromWire(workflowStatus),
    state: state ? messageJson(AgentExtensionsSchema, state) : null,
  })
}
