import { spawn } from 'node:child_process'

/** What a program gets to tidy up after it was asked to end. */
const GRACE_MS = 3_000

/**
 * Runs a program to its end without a shell and without standard input. An abort interrupts it as Ctrl-C does, and kills it
 * when that takes longer than three seconds. Never rejects for a failing program: a code
 * of null means that it could not be started, ran out of time or died by a signal, and `output` says so.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{signal?: AbortSignal | undefined, env?: Record<string, string | undefined>, timeoutMs?: number}} [options]
 *   `timeoutMs` defaults to 10 minutes: the longest a download through pip may take.
 * @returns {Promise<{code: number | null, stdout: string, output: string}>}
 */
export async function run(command, args, { signal, env = process.env, timeoutMs = 600_000 } = {}) {
  signal?.throwIfAborted()
  const limit = AbortSignal.timeout(timeoutMs)
  const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  /** @type {NodeJS.Timeout | undefined} */
  let grace
  const end = () => {
    if (limit.aborted && !signal?.aborted) output += `no answer within ${timeoutMs / 1000} s`
    child.kill('SIGINT')
    grace ??= setTimeout(() => child.kill('SIGKILL'), GRACE_MS)
  }
  const stop = signal ? AbortSignal.any([signal, limit]) : limit
  stop.addEventListener('abort', end, { once: true })
  let stdout = ''
  let output = ''
  child.stdout.on('data', (bytes) => {
    stdout += bytes
    output += bytes
  })
  child.stderr.on('data', (bytes) => {
    output += bytes
  })
  /** @type {number | null} */
  const code = await new Promise((resolve) => {
    child.on('error', (error) => {
      output += error.message
      if (child.pid === undefined) resolve(null)
    })
    child.on('close', (code) => resolve(code))
  })
  stop.removeEventListener('abort', end)
  clearTimeout(grace)
  signal?.throwIfAborted()
  return { code, stdout, output: output.trim() }
}
