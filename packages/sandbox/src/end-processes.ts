import { systemClock, TuttiError, type Clock } from '@tutti/core'
import {
  bootId,
  isRunning,
  isSameProcess,
  pidNamespace,
  processesInNamespace,
  processesMarked,
  signalProcess,
} from '@tutti/processes'
import { groupProcesses } from './cgroup-folder.ts'
import { sandboxMarker } from './sandbox-marker.ts'
import type { SandboxState } from './sandbox-state.ts'

/** Every living process of a sandbox, found in each way there is: kernel group, pid namespace, marker. */
export function sandboxProcesses(state: SandboxState): number[] {
  const found = new Set(groupProcesses(state.groups))
  if (state.bootId === bootId()) {
    for (const name of [state.main, state.init]) {
      if (name && isSameProcess(name.pid, name.start)) found.add(name.pid)
    }
    const init = state.init
    // Nothing leaves its kernel group, so where there is one the namespace need not be searched for.
    if (state.groups.length === 0 && init && isSameProcess(init.pid, init.start)) {
      const namespace = pidNamespace(init.pid)
      if (namespace) for (const pid of processesInNamespace(namespace)) found.add(pid)
    }
  }
  // A namespace without a known first process is one whose bwrap died before it told of it.
  if (state.isolation === 'none' || !state.init) {
    for (const pid of processesMarked(`${sandboxMarker}=${state.id}`)) found.add(pid)
  }
  found.delete(process.pid)
  return [...found].filter(isRunning)
}

const pollMs = 15
/** SIGKILL needs no answer from the process; only the kernel's own clean-up takes time. */
const killLimitMs = 10_000

/**
 * Ends every process: SIGTERM, after `graceMs` SIGKILL, until none is left.
 *
 * @throws TuttiError `unavailable` when processes survive SIGKILL for 10 s (stuck in the kernel).
 */
export async function endProcesses(
  state: SandboxState,
  graceMs: number,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<void> {
  const shell = new Set([state.main?.pid, state.init?.pid])
  const left = () => sandboxProcesses(state)
  const inside = () => (state.isolation === 'bubblewrap' ? left().filter((pid) => !shell.has(pid)) : left())

  if (graceMs > 0) {
    for (const pid of inside()) signalProcess(pid, 'SIGTERM')
    signalGroup(state, 'SIGTERM')
    const graceEnd = clock.monotonic() + graceMs
    while (clock.monotonic() < graceEnd && inside().length > 0) await clock.sleep(pollMs, signal)
  }
  const killEnd = clock.monotonic() + killLimitMs
  for (let pids = left(); pids.length > 0; pids = left()) {
    // Stopping all first leaves none that could start another between the listing and its own end.
    for (const pid of pids) signalProcess(pid, 'SIGSTOP')
    for (const pid of pids) signalProcess(pid, 'SIGKILL')
    signalGroup(state, 'SIGKILL')
    if (clock.monotonic() > killEnd) {
      throw new TuttiError(
        'unavailable',
        `Processes ${pids.join(', ')} of a sandbox do not die; the kernel holds them.`,
        {
          sandbox: state.id,
        },
      )
    }
    await clock.sleep(pollMs, signal)
  }
}

/** All that can be done for descendants where there is no /proc to find them in. */
function signalGroup(state: SandboxState, signal: 'SIGTERM' | 'SIGKILL'): void {
  const { main } = state
  if (state.isolation === 'none' && main && isSameProcess(main.pid, main.start))
    signalProcess(-main.pid, signal)
}
