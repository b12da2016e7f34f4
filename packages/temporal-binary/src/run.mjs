import { spawn } from 'node:child_process'

/**
 * Runs a program to its end without a shell and without standard input. Never rejects for a failing program: a code
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
  const child = spawn(command, args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    killSignal: 'SIGKILL',
  })
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
      output += limit.aborted ? `no answer within ${timeoutMs / 1000} s` : error.message
      if (child.pid === undefined) resolve(null)
    })
    child.on('close', (code) => resolve(code))
  })
  signal?.throwIfAborted()
  return { code, stdout, output: output.trim() }
}
