import type { TaskEvent } from '@tutti/protocol'
import { appendToEnsemble } from './append-to-ensemble.ts'
import type { ActivityDeps } from './deps.ts'
import { childView } from './record-state.ts'
import type { HostSession } from './sessions.ts'
import type { TurnControl } from './turn-control.ts'

type Question = Extract<TaskEvent, { type: 'agent_question' }>

/** The question that an agent waits with: visible in the catalog, answered by a person, by default, or by giving up. */
export interface OpenQuestion {
  asked(question: Question): Promise<void>
  answer(commandId: string, questionId: string, text: string): void
  close(): void
}

export function createOpenQuestion(
  deps: ActivityDeps,
  session: HostSession,
  control: TurnControl,
  turnId: string,
): OpenQuestion {
  const { log } = deps
  const { bcId, config } = session
  let open: Question | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  // While a person thinks, silence is no stall.
  let keepAlive: ReturnType<typeof setInterval> | undefined

  // One after the other, so that the end of a question never overtakes its beginning.
  let shown: Promise<unknown> = Promise.resolve()
  let told: Promise<unknown> = Promise.resolve()
  const show = (question: Question | null) => {
    const showing = shown.then(() => showQuestion(deps, session, question))
    shown = showing.catch(() => undefined)
    // In its own time: an agent must not wait for Temporal.
    told = told
      .then(() => deps.tellWaiting(bcId, { turnId, waits: question !== null }))
      .catch((error: unknown) => log.warn({ err: error, bc_id: bcId }, 'telling that a turn waits failed'))
    return showing
  }
  const settle = () => {
    open = undefined
    clearTimeout(timer)
    clearInterval(keepAlive)
  }
  const giveUp = (why: string) => control.end({ kind: 'limit', reason: 'agent_error', detail: why })
  const give = (question: Question, text: string) => {
    settle()
    session.agent?.answer(question.questionId, text)
    void show(null).catch((error: unknown) =>
      log.warn({ err: error, bc_id: bcId }, 'closing a question failed'),
    )
  }
  const byDefault = (question: Question) => {
    const text = question.default ?? question.options?.[0]
    if (text === undefined) giveUp(`The agent asked a question that has no default: ${question.text}`)
    else give(question, text)
  }

  return {
    async asked(question) {
      open = question
      await show(question)
      // Answered, or the turn was over, while it was being made visible.
      if (open !== question) return
      if (config.onQuestion === 'fail') return giveUp(`The agent asked a question: ${question.text}`)
      if (config.onQuestion === 'default') return byDefault(question)
      keepAlive = setInterval(() => control.alive(), Math.max(100, config.stallTimeoutMs / 3))
      timer = setTimeout(() => giveUp(`Nobody answered in time: ${question.text}`), config.questionTimeoutMs)
    },
    answer(commandId, questionId, text) {
      if (!open || open.questionId !== questionId) return
      give(open, text)
      void session.log.write({ type: 'ack', commandId }).catch(() => undefined)
    },
    close() {
      const unanswered = open !== undefined
      settle()
      if (unanswered) void show(null).catch(() => undefined)
    },
  }
}

/** Into the catalog, and of a child into its ensemble's stream. */
async function showQuestion(
  { catalog, eventLog }: ActivityDeps,
  session: HostSession,
  question: Question | null,
): Promise<void> {
  const { bcId, owner } = session
  const { signal } = session.controller
  const logSequence = await session.log.flush()
  const openQuestion = question && stored(question)
  await catalog.agents.project(bcId, { logSequence, openQuestion }, signal)
  const row = await catalog.agents.get(owner, bcId, signal)
  if (!row.ensembleId) return
  const once = `question/${bcId}/${logSequence}/${question ? 'open' : 'closed'}`
  await appendToEnsemble(eventLog, row.ensembleId, once, { type: 'child', child: childView(row) }, signal)
}

const stored = ({ questionId, text, options, default: preset }: Question) => ({
  questionId,
  text,
  ...(options && { options }),
  ...(preset !== undefined && { default: preset }),
})
