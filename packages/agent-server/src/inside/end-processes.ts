import { setTimeout } from 'node:timers/promises'
import { allPids, isRunning, processesMarked, signalProcess } from '@tutti/processes'
import { sandboxMarker } from '@tutti/sandbox'

const pollMs = 15

/** Everything in this sandbox but the agent server and what holds the sandbox itself. */
export function otherProcesses(isolated: boolean): number[] {
  const own = new Set([1, process.pid, process.ppid])
  const marked = process.env[sandboxMarker]
  const pids = isolated
    ? allPids()
    : marked === undefined
      ? []
      : processesMarked(`${sandboxMarker}=${marked}`)
  return pids.filter((pid) => !own.has(pid) && isRunning(pid))
}

/** SIGTERM to all of them, SIGKILL after the grace, until none is left: also sessions that detached themselves. */
export async function endOtherProcesses(isolated: boolean, graceMs: number): Promise<void> {
  for (const pid of otherProcesses(isolated)) signalQuietly(pid, 'SIGTERM')
  const graceEnd = performance.now() + graceMs
  while (performance.now() < graceEnd && otherProcesses(isolated).length > 0) await setTimeout(pollMs)
  for (let left = otherProcesses(isolated); left.length > 0; left = otherProcesses(isolated)) {
    for (const pid of left) signalQuietly(pid, 'SIGSTOP')
    for (const pid of left) signalQuietly(pid, 'SIGKILL')
    await setTimeout(pollMs)
  }
}

/** A process with another identity cannot be signalled from here; the host ends it with the sandbox. */
function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    signalProcess(pid, signal)
  } catch {
    // EPERM.
  }
}
