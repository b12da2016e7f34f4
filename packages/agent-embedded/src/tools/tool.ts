import type { AgentHost } from '@tutti/agent'
import type { Clock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import type { ZodType } from 'zod'

export type Json = null | string | number | boolean | Json[] | { [key: string]: Json }

/** What the model reads; also the `result` of `tool_call_completed`. `ok: false` is for the model to mend, not the end of a turn. */
export interface ToolResult {
  readonly ok: boolean
  readonly value: { [key: string]: Json }
}

export interface ToolContext {
  readonly host: AgentHost
  readonly clock: Clock
  readonly callId: string
  readonly signal: AbortSignal
  /** The session's list, replaced as a whole; it is exported with the session. */
  readonly setTodos: (todos: readonly Todo[]) => void
  /** Opens a question and waits for {@link AgentSession.answer}. @throws TuttiError `cancelled`. */
  readonly openQuestion: () => { readonly questionId: string; readonly answer: Promise<string> }
}

export interface Todo {
  readonly text: string
  readonly status: 'pending' | 'in_progress' | 'completed'
}

/**
 * Something the model may do. `run` yields events of its own while it works; the loop adds the start and the end of the call.
 * A TuttiError other than `cancelled` becomes a result with `ok: false`.
 */
export interface Tool<Input = unknown> {
  readonly name: string
  readonly description: string
  readonly input: ZodType<Input>
  run(input: Input, context: ToolContext): AsyncGenerator<TaskEvent, ToolResult>
}

/** Keeps the input's type inside the definition, so that tools of different inputs fit one list. */
export function defineTool<Input>(tool: Tool<Input>): Tool {
  return { ...tool, run: (input, context) => tool.run(tool.input.parse(input), context) }
}
