import { TuttiError } from '@tutti/core'
import { writeHomeFile } from './home-file.ts'
import type { AgentHost } from './port.ts'

/**
 * Carries answers into the sandbox: each becomes one line `{"questionId","text"}` at the end of a file that the program reads
 * (`$TUTTI_ANSWERS`). A file and not a pipe, so that a program may look when it likes, or again.
 */
export interface AnswerFile {
  /** Starts a turn with an empty file; questions of earlier turns are closed. */
  begin(path: string, signal: AbortSignal): Promise<void>
  /** Opens a question of the program. The id in the log is unique over turns, the program's need not be. */
  open(turnId: string, programId: string): string
  /** @throws TuttiError `not_found` when that question is not open. */
  give(questionId: string, text: string): void
  /** All answers given so far are written, or {@link failed} is aborted. Never rejects. */
  settled(): Promise<void>
  /** Aborted, with the error as its reason, when an answer could not be written: the program would wait for ever. */
  readonly failed: AbortSignal
}

export function createAnswerFile(host: AgentHost): AnswerFile {
  const openQuestions = new Map<string, string>()
  let path = ''
  let turn: AbortSignal = AbortSignal.abort()
  let failure = new AbortController()
  let writes = Promise.resolve()
  return {
    async begin(newPath, signal) {
      openQuestions.clear()
      path = newPath
      turn = signal
      failure = new AbortController()
      await writeHomeFile(host, path, new Uint8Array(), 'replace', signal)
    },
    open(turnId, programId) {
      const questionId = `${turnId}/${programId}`
      openQuestions.set(questionId, programId)
      return questionId
    },
    give(questionId, text) {
      const programId = openQuestions.get(questionId)
      if (programId === undefined) {
        throw new TuttiError('not_found', `There is no open question ${questionId}.`, { questionId })
      }
      openQuestions.delete(questionId)
      const line = new TextEncoder().encode(`${JSON.stringify({ questionId: programId, text })}\n`)
      const [target, signal, failed] = [path, turn, failure]
      writes = writes
        .then(() => writeHomeFile(host, target, line, 'append', signal))
        .catch((error: unknown) => failed.abort(TuttiError.from(error)))
    },
    settled: () => writes,
    get failed() {
      return failure.signal
    },
  }
}
