import type { AgentHost, HostExecExit } from '@tutti/agent'

/** The end of the output that is worth showing to a person. */
const tailBytes = 4096

/** The last 4 KiB of what a command has said so far. */
export interface OutputTail {
  add(bytes: Uint8Array): void
  text(): string
}

export function createOutputTail(): OutputTail {
  let tail = Buffer.alloc(0)
  return {
    add(bytes) {
      tail = Buffer.concat([tail, bytes])
      if (tail.length > tailBytes) tail = tail.subarray(tail.length - tailBytes)
    },
    text: () => new TextDecoder().decode(tail).trim(),
  }
}

/**
 * Runs a shell command of the user's (setup, check) in the sandbox and keeps the tail of its output, in `kept` also when it is
 * aborted. It is the user's own line, run where the agent's commands run, so a shell is right here.
 */
export async function runToEnd(
  host: AgentHost,
  command: string,
  signal: AbortSignal,
  timeoutMs?: number,
  kept = createOutputTail(),
): Promise<{ exit: HostExecExit; tail: string }> {
  const running = host.exec(
    { argv: ['/bin/sh', '-c', command], ...(timeoutMs !== undefined && { timeoutMs }) },
    signal,
  )
  for (;;) {
    const step = await running.next()
    if (step.done) return { exit: step.value, tail: kept.text() }
    kept.add(step.value.bytes)
  }
}
