import type { TaskEvent } from '@tutti/protocol'
import type { ActivityDeps } from './deps.ts'
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
): OpenQuestion {
  const { catalog, log } = deps
  const { bcId, config } = session
  let open: Question | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  // While a person thinks, silence is no stall.
  let keepAlive: ReturnType<typeof setInterval> | undefined

  const project = async (question: Question | null) => {
    const logSequence = await session.log.flush()
    const openQuestion = question && { questionId: question.questionId, text: question.text }
    await catalog.agents.project(bcId, { logSequence, openQuestion }, session.controller.signal)
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
    void project(null).catch((error: unknown) =>
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
      await project(question)
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
      if (unanswered) void project(null).catch(() => undefined)
    },
  }
}
