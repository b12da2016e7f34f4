import { TuttiError, type Clock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import { streamText, type FinishReason, type ModelMessage, type ToolSet } from 'ai'
import type { ZodType } from 'zod'
import type { Brain } from './brain.ts'
import { instructions } from './instructions.ts'
import { tools } from './tools/tools.ts'

/** No `execute`: the loop runs the calls itself, so that their events are ours and live. */
const toolSet: ToolSet = Object.fromEntries(
  tools.map(({ name, description, input }) => [name, { description, inputSchema: input as ZodType<never> }]),
)

export interface ModelStepRequest {
  readonly brain: Brain
  readonly clock: Clock
  readonly messages: readonly ModelMessage[]
  readonly modelCallId: string
  readonly maxRetries: number
}

export interface ModelStep {
  readonly text: string
  /** Calls that fit a tool and its schema. The others have their error in `messages` already. */
  readonly calls: readonly { readonly callId: string; readonly toolName: string; readonly input: unknown }[]
  readonly finishReason: FinishReason
  /** What the conversation grows by. */
  readonly messages: readonly ModelMessage[]
}

/** One call of the model, as events while it streams. @throws what the provider threw; TuttiError `cancelled` after an abort. */
export async function* runModelStep(
  { brain, clock, messages, modelCallId, maxRetries }: ModelStepRequest,
  signal: AbortSignal,
): AsyncGenerator<TaskEvent, ModelStep> {
  const leave = new AbortController()
  const result = streamText({
    model: brain.model,
    instructions,
    messages: [...messages],
    tools: toolSet,
    maxRetries,
    abortSignal: AbortSignal.any([signal, leave.signal]),
    // Errors come as stream parts too; without this the library also prints them.
    onError: () => {},
  })
  const calls: ModelStep['calls'][number][] = []
  const names = new Map<string, string>()
  let text = ''
  let finishReason: FinishReason = 'other'
  let thinkingSince = 0
  try {
    for await (const part of result.fullStream) {
      switch (part.type) {
        case 'text-delta':
          if (part.text === '') break
          text += part.text
          yield { type: 'text_delta', text: part.text }
          break
        case 'reasoning-start':
          thinkingSince = clock.monotonic()
          break
        case 'reasoning-delta':
          if (part.text !== '') yield { type: 'thinking_delta', text: part.text }
          break
        case 'reasoning-end':
          yield { type: 'thinking_completed', durationMs: Math.round(clock.monotonic() - thinkingSince) }
          break
        case 'tool-input-start':
          names.set(part.id, part.toolName)
          break
        case 'tool-input-delta':
          yield {
            type: 'partial_tool_call',
            callId: part.id,
            toolName: names.get(part.id) ?? 'unknown',
            argsTextDelta: part.delta,
            modelCallId,
          }
          break
        case 'tool-call': {
          const { toolCallId: callId, toolName, input } = part
          if (!part.invalid) calls.push({ callId, toolName, input })
          else yield { type: 'tool_call_started', callId, toolName, args: input, modelCallId }
          break
        }
        case 'tool-error':
          yield {
            type: 'tool_call_completed',
            callId: part.toolCallId,
            toolName: part.toolName,
            outcome: 'error',
            result: { error: part.error instanceof Error ? part.error.message : String(part.error) },
            modelCallId,
          }
          break
        case 'finish-step': {
          finishReason = part.finishReason
          const tokens = part.usage.outputTokens ?? 0
          if (tokens > 0) yield { type: 'token_delta', tokens }
          break
        }
        case 'abort':
          throw new TuttiError('cancelled', 'The agent was stopped.')
        case 'error':
          throw part.error
        default:
      }
    }
    signal.throwIfAborted()
    return { text, calls, finishReason, messages: (await result.response).messages }
  } finally {
    // The reader may leave in the middle; then the request must not go on.
    leave.abort()
  }
}
