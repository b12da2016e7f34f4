import type { LanguageModelV4, LanguageModelV4Prompt, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { TuttiError, type Clock } from '@tutti/core'
import { planStep, type StepPlan } from './scripted-plan.ts'

/** Small pieces, so that the loop and all who listen see real streams. */
const pieceChars = 24

const noUsage = {
  inputTokens: { total: 0, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 0, text: undefined, reasoning: undefined },
}

/**
 * A brain without a model: does what the script in the prompt says, one tool call per step, and reads the results. It holds no
 * state; where it stands follows from the conversation alone, so a session that was cut off goes on at the right action. It
 * names itself in all that it says and thinks, and uses no tokens.
 */
export function createScriptedModel({ clock }: { readonly clock: Clock }): LanguageModelV4 {
  // Call ids differ between sessions: a call that was cut off and its repetition are two calls in the log.
  const nonce = crypto.randomUUID().slice(0, 8)
  return {
    specificationVersion: 'v4',
    provider: 'tutti',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate() {
      throw new TuttiError('internal', 'The scripted brain can only be streamed.')
    },
    async doStream({ prompt, abortSignal }) {
      const callId = `call-scripted-${nonce}-${countCalls(prompt) + 1}`
      const parts = streamPlan(planStep(prompt), callId, clock, abortSignal ?? new AbortController().signal)
      return {
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          async pull(controller) {
            try {
              const next = await parts.next()
              if (next.done) controller.close()
              else controller.enqueue(next.value)
            } catch (error) {
              controller.error(error)
            }
          },
          async cancel() {
            await parts.return()
          },
        }),
      }
    },
  }
}

async function* streamPlan(
  plan: StepPlan,
  callId: string,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<LanguageModelV4StreamPart, void> {
  yield { type: 'stream-start', warnings: [] }
  yield { type: 'response-metadata', id: `scripted-${callId}`, modelId: 'scripted' }
  let block = 0
  for (const part of plan.words) {
    const id = `block-${(block += 1)}`
    if (part.do === 'sleep') {
      await clock.sleep(part.seconds * 1000, signal)
      continue
    }
    const kind = part.do === 'think' ? 'reasoning' : 'text'
    yield { type: `${kind}-start`, id }
    for (const delta of pieces(`scripted: ${part.text}\n`)) yield { type: `${kind}-delta`, id, delta }
    yield { type: `${kind}-end`, id }
  }
  if (plan.failure !== undefined) {
    yield { type: 'error', error: new TuttiError('failed_precondition', `scripted: ${plan.failure}`) }
    return
  }
  if (plan.call !== undefined) {
    const { toolName } = plan.call
    const input = JSON.stringify(plan.call.input)
    yield { type: 'tool-input-start', id: callId, toolName }
    for (const delta of pieces(input)) yield { type: 'tool-input-delta', id: callId, delta }
    yield { type: 'tool-input-end', id: callId }
    yield { type: 'tool-call', toolCallId: callId, toolName, input }
  }
  const unified = plan.call === undefined ? 'stop' : 'tool-calls'
  yield { type: 'finish', usage: noUsage, finishReason: { unified, raw: undefined } }
}

function* pieces(text: string): Generator<string> {
  const characters = Array.from(text)
  // A long text in small pieces would only be slow: at most some hundred of them.
  const size = Math.max(pieceChars, Math.ceil(characters.length / 200))
  for (let at = 0; at < characters.length; at += size) yield characters.slice(at, at + size).join('')
}

function countCalls(prompt: LanguageModelV4Prompt): number {
  return prompt.flatMap((message) =>
    message.role === 'assistant' ? message.content.filter((part) => part.type === 'tool-call') : [],
  ).length
}
