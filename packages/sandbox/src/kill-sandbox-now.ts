import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { signalProcess } from '@tutti/processes'
import { removeGroups } from './cgroup-folder.ts'
import { sandboxProcesses } from './end-processes.ts'
import { diskData, systemEnv } from './sandbox-disk.ts'
import { sandboxFolder, stateFile, type SandboxState } from './sandbox-state.ts'

const pauseMs = 10
/** What takes longer is left to the next start: whoever asked for an end at once does not wait. */
const patienceMs = 1000

/** Ends and removes a sandbox without giving anybody else a turn, as far as that is possible. */
export function killSandboxNow(root: string, state: SandboxState): void {
  const until = Date.now() + patienceMs
  for (
    let pids = sandboxProcesses(state);
    pids.length > 0 && Date.now() < until;
    pids = sandboxProcesses(state)
  ) {
    for (const pid of pids) signalProcess(pid, 'SIGKILL')
    pause()
  }
  const folder = sandboxFolder(root, state.id)
  try {
    if (state.mounted) execFileSync('umount', ['-l', diskData(folder)], { env: systemEnv, stdio: 'ignore' })
  } catch {
    // It was not mounted yet, or not any more.
  }
  for (;;) {
    try {
      removeGroups(state.groups)
      rmSync(folder, { recursive: true, force: true })
      return rmSync(stateFile(root, state.id), { force: true })
    } catch {
      // The kernel lets go of what the dead held a moment later. With its state left, the next start finds the rest.
      if (Date.now() > until) return
      pause()
    }
  }
}

const pause = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
