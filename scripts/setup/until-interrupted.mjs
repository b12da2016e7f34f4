import { isSetUpError } from './set-up-error.mjs'
import { say } from './say.mjs'

/**
 * Runs a script's work and ends the process with its exit code. SIGINT, SIGTERM and SIGHUP abort it. A set-up error is
 * printed plainly: a stack trace would hide what to do.
 *
 * @param {(signal: AbortSignal) => Promise<number>} work
 */
export async function untilInterrupted(work) {
  const stop = new AbortController()
  const handlers = Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }).map(([name, code]) => {
    const handler = () => {
      process.exitCode = code
      stop.abort(new Error('interrupted'))
    }
    process.on(name, handler)
    return () => process.off(name, handler)
  })
  try {
    const code = await work(stop.signal)
    process.exitCode ||= code
  } catch (error) {
    if (!stop.signal.aborted) {
      process.exitCode = 1
      if (!isSetUpError(error)) throw error
      say(`\n${error.message}`)
    }
  } finally {
    for (const off of handlers) off()
  }
}
