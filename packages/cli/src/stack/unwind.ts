import { TuttiError } from '@tutti/core'

/** Something that was started, and how it ends. */
export interface UndoStep {
  /** For people: `the worker`. */
  readonly what: string
  readonly end: () => Promise<void>
}

const reminderMs = 30_000

/**
 * Ends what was started, the last first; what fails is told and keeps nothing else. A step that takes long is named every 30 s: and as long as
 * one is not done this process lives, whatever else there is to keep it.
 */
export async function unwind(steps: readonly UndoStep[], log: (line: string) => void): Promise<void> {
  const failures: unknown[] = []
  for (const { what, end } of steps.toReversed()) {
    const reminder = setInterval(() => log(`Still ending ${what}.`), reminderMs)
    try {
      await end()
    } catch (error) {
      failures.push(error)
    } finally {
      clearInterval(reminder)
    }
  }
  for (const failure of failures) log(`While stopping: ${TuttiError.from(failure).message}`)
}
