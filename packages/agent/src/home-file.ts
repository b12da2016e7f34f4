import { TuttiError } from '@tutti/core'
import type { AgentHost } from './port.ts'

/**
 * Writes a file outside the workspace, in the agent's home, readable by the agent alone. {@link AgentHost.writeFile} stays inside
 * the workspace, so a shell in the sandbox takes the bytes from its input; the path is an operand, never part of the script.
 *
 * @throws TuttiError `unavailable` when the sandbox refused.
 */
export async function writeHomeFile(
  host: AgentHost,
  path: string,
  bytes: Uint8Array,
  mode: 'replace' | 'append',
  signal: AbortSignal,
): Promise<void> {
  const redirect = mode === 'append' ? '>>' : '>'
  const script = `umask 077; mkdir -p -- "$(dirname -- "$1")" && cat ${redirect} "$1"`
  const run = host.exec({ argv: ['sh', '-c', script, 'sh', path], stdin: bytes }, signal)
  let talk = ''
  for (;;) {
    const step = await run.next()
    if (!step.done) {
      talk += Buffer.from(step.value.bytes).toString()
      continue
    }
    if (step.value.code === 0) return
    throw new TuttiError('unavailable', `${path} could not be written in the sandbox: ${talk.slice(-500)}`, {
      path,
    })
  }
}
