import { spawn } from 'node:child_process'
import { root } from './root.mjs'
import { say } from './say.mjs'

const HEARTBEAT_MS = 5_000

/**
 * Runs one long step quietly: its output is kept, and every 5 s a line says that it goes on. An abort ends the step's
 * whole process group, for package managers start further processes.
 *
 * @param {string} title
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{signal: AbortSignal, env?: NodeJS.ProcessEnv, quiet?: boolean}} options `quiet` says nothing: for what runs beside other steps
 * @returns {Promise<{ok: boolean, output: string}>}
 */
export async function runStep(title, command, args, { signal, env = process.env, quiet = false }) {
  signal.throwIfAborted()
  const tell = quiet ? () => {} : say
  tell(`${title} …`)
  const started = Date.now()
  let output = ''
  const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes) => {
      output += bytes
    })
  }
  const heartbeat = setInterval(() => {
    const last = output.trim().split('\n').at(-1) ?? ''
    tell(`  … ${Math.round((Date.now() - started) / 1000)} s  ${last.slice(0, 90)}`.trimEnd())
  }, HEARTBEAT_MS)
  const end = () => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGTERM')
    } catch {
      // It has ended by itself.
    }
  }
  signal.addEventListener('abort', end, { once: true })
  try {
    /** @type {number | null} */
    const code = await new Promise((resolve) => {
      child.on('error', (error) => {
        output += error.message
        resolve(null)
      })
      child.on('close', resolve)
    })
    signal.throwIfAborted()
    return { ok: code === 0, output }
  } finally {
    clearInterval(heartbeat)
    signal.removeEventListener('abort', end)
  }
}
