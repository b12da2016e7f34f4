import { TuttiError } from '@tutti/core'

/** The questions of a session that wait for a person. */
export interface Questions {
  open(signal: AbortSignal): { readonly questionId: string; readonly answer: Promise<string> }
  /** @throws TuttiError `not_found` when that question is not open. */
  answer(questionId: string, text: string): void
}

export function createQuestions(): Questions {
  const waiting = new Map<string, (text: string) => void>()
  return {
    open(signal) {
      const questionId = `q-${crypto.randomUUID()}`
      const answer = new Promise<string>((resolve, reject) => {
        const onAbort = () => {
          waiting.delete(questionId)
          reject(new TuttiError('cancelled', 'The question was withdrawn because the turn was stopped.'))
        }
        if (signal.aborted) return onAbort()
        signal.addEventListener('abort', onAbort, { once: true })
        waiting.set(questionId, (text) => {
          signal.removeEventListener('abort', onAbort)
          waiting.delete(questionId)
          resolve(text)
        })
      })
      // The question is yielded before anybody awaits the answer; an abort in between must not be an unhandled rejection.
      answer.catch(() => {})
      return { questionId, answer }
    },
    answer(questionId, text) {
      const resolve = waiting.get(questionId)
      if (resolve === undefined) {
        throw new TuttiError('not_found', `There is no open question ${questionId}.`, { questionId })
      }
      resolve(text)
    },
  }
}
