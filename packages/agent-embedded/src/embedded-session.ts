import type { AgentHost, AgentSession, TurnOutcome, TurnRequest } from '@tutti/agent'
import { TuttiError, type Clock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import type { Brain } from './brain.ts'
import { createCappedText } from './capped-text.ts'
import { closeOpenCalls, isFinished, lastWords, newsMessage, wasTold } from './conversation.ts'
import { describeModelError } from './model-error.ts'
import { runModelStep } from './model-step.ts'
import { createQuestions } from './questions.ts'
import { encodeSession, type SessionState } from './session-state.ts'
import { runToolCall } from './tool-call.ts'

const maxDetailChars = 1000

const continuedNote =
  'This task was started before and cut off; the conversation about it is lost. What was done so far is in the workspace. Look at it, then finish the task:\n\n'

interface EmbeddedSessionDeps {
  readonly clock: Clock
  readonly host: AgentHost
  readonly brain: Brain
  readonly state: SessionState
  readonly maxSteps: number
  readonly maxRetries: number
}

/** The loop: one model call, then its tool calls in order, until a model call asks for none. */
export function createEmbeddedSession(deps: EmbeddedSessionDeps): AgentSession {
  const { clock, host, brain, state, maxSteps, maxRetries } = deps
  const questions = createQuestions()

  async function* runTurn(turn: TurnRequest, signal: AbortSignal): AsyncGenerator<TaskEvent, TurnOutcome> {
    closeOpenCalls(state.messages)
    const { notice = '' } = turn
    if (state.turnId === turn.turnId && wasTold(state.messages, notice)) {
      // Cut off after the last word and before the end was in the log: there is nothing left to do.
      if (isFinished(state.messages)) return completed(lastWords(state.messages))
    } else {
      state.messages.push({
        role: 'user',
        content:
          // First: by its beginning it is known again.
          notice +
          host.news() +
          (turn.continued && state.turnId !== turn.turnId ? continuedNote : '') +
          turn.prompt,
      })
      state.turnId = turn.turnId
    }
    for (let stepId = 1; stepId <= maxSteps; stepId += 1) {
      if (signal.aborted) throw new TuttiError('cancelled', 'The agent was stopped.')
      // Whatever has happened since the last request, also when the turn goes on in another sandbox.
      const news = host.news()
      if (news !== '') state.messages.push(newsMessage(news))
      const started = clock.monotonic()
      const modelCallId = `${brain.callPrefix}${crypto.randomUUID()}`
      yield { type: 'step_started', stepId }
      let step
      try {
        step = yield* runModelStep(
          { brain, clock, messages: state.messages, modelCallId, maxRetries },
          signal,
        )
      } catch (thrown) {
        if (signal.aborted) throw new TuttiError('cancelled', 'The agent was stopped.', {}, thrown)
        const error = describeModelError(thrown, brain.secrets)
        // What the ensemble must tell apart is thrown; the rest is a failed turn with its reason.
        if (error.code === 'resource_exhausted' || error.code === 'cancelled') throw error
        return failed(error.message)
      }
      state.messages.push(...step.messages)
      for (const call of step.calls)
        yield* runToolCall({ ...call, modelCallId }, { host, clock, questions, state }, signal)
      yield { type: 'step_completed', stepId, durationMs: Math.round(clock.monotonic() - started) }
      if (step.finishReason === 'tool-calls' || step.calls.length > 0) continue
      if (step.finishReason === 'length')
        return failed('The answer of the model was cut off at its output limit.')
      if (step.finishReason === 'content-filter')
        return failed("The provider's content filter stopped the answer.")
      if (step.finishReason === 'error') return failed('The provider ended the answer with an error.')
      return completed(step.text)
    }
    return failed(`The turn was ended after ${maxSteps} model calls. Send a follow-up to let it go on.`)
  }

  return {
    brain: brain.name,
    runTurn,
    answer: (questionId, text) => questions.answer(questionId, text),
    async exportSession() {
      return encodeSession(state)
    },
    async close() {},
  }
}

function completed(words: string): TurnOutcome {
  // The port allows 2 KiB of UTF-8; a character has at most three bytes per UTF-16 unit.
  const summary = words.trim().slice(-682)
  return { outcome: 'completed', ...(summary === '' ? {} : { summary: summary.toWellFormed() }) }
}

function failed(detail: string): TurnOutcome {
  const capped = createCappedText(maxDetailChars)
  capped.push(detail)
  return { outcome: 'failed', detail: capped.text().toWellFormed() }
}
