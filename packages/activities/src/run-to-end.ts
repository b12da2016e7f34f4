import type { AgentHost, HostExecExit } from '@tutti/agent'

/** The end of the output that is worth showing to a person. */
const tailBytes = 4096

/**
 * Runs a shell command of the user's (setup, check) in the sandbox and keeps the tail of its output. It is the user's own line, run
 * where the agent's commands run, so a shell is right here.
 */
export async function runToEnd(
  host: AgentHost,
  command: string,
  signal: AbortSignal,
  timeoutMs?: number,
): Promise<{ exit: HostExecExit; tail: string }> {
  const running = host.exec(
    { argv: ['/bin/sh', '-c', command], ...(timeoutMs !== undefined && { timeoutMs }) },
    signal,
  )
  let tail = Buffer.alloc(0)
  for (;;) {
    const step = await running.next()
    if (step.done) return { exit: step.value, tail: new TextDecoder().decode(tail).trim() }
    tail = Buffer.concat([tail, step.value.bytes])
    if (tail.length > tailBytes) tail = tail.subarray(tail.length - tailBytes)
  }
}
