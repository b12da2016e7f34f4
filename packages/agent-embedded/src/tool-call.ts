import type { AgentHost } from '@tutti/agent'
import { TuttiError, type Clock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import type { Questions } from './questions.ts'
import type { SessionState } from './session-state.ts'
import type { ToolResult } from './tools/tool.ts'
import { tools } from './tools/tools.ts'

interface ToolCallRequest {
  readonly callId: string
  readonly toolName: string
  readonly input: unknown
  readonly modelCallId: string
}

interface ToolCallDeps {
  readonly host: AgentHost
  readonly clock: Clock
  readonly questions: Questions
  readonly state: SessionState
}

/**
 * Runs one call between its start and end events. The result joins the conversation after its files are captured and before
 * the end is said, so a session exported at that event knows all that the log knows.
 *
 * @throws TuttiError `cancelled` after an abort, and what the sandbox threw when it is gone (`unavailable` and the like).
 */
export async function* runToolCall(
  call: ToolCallRequest,
  { host, clock, questions, state }: ToolCallDeps,
  signal: AbortSignal,
): AsyncGenerator<TaskEvent, void> {
  const { callId, toolName, input, modelCallId } = call
  yield { type: 'tool_call_started', callId, toolName, args: input, modelCallId }
  let result: ToolResult
  try {
    const tool = tools.find((candidate) => candidate.name === toolName)
    if (tool === undefined) throw new TuttiError('not_found', `There is no tool ${toolName}.`)
    result = yield* tool.run(input, {
      host,
      clock,
      callId,
      signal,
      setTodos: (todos) => {
        state.todos = todos
      },
      openQuestion: () => questions.open(signal),
    })
  } catch (thrown) {
    const error = TuttiError.from(thrown)
    if (signal.aborted) {
      yield { type: 'tool_call_completed', callId, toolName, outcome: 'cancelled', modelCallId }
      throw new TuttiError('cancelled', 'The agent was stopped.', {}, thrown)
    }
    // Only what the model can mend goes back to it; a lost sandbox ends the turn.
    if (!['not_found', 'invalid_argument', 'permission_denied', 'failed_precondition'].includes(error.code))
      throw error
    result = { ok: false, value: { error: error.message } }
  }
  await host.toolEnded(signal)
  const { ok, value } = result
  state.messages.push({
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: callId,
        toolName,
        output: { type: ok ? 'json' : 'error-json', value },
      },
    ],
  })
  yield {
    type: 'tool_call_completed',
    callId,
    toolName,
    outcome: ok ? 'ok' : 'error',
    result: value,
    modelCallId,
  }
}
