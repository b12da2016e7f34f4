import { basename } from 'node:path'
import { settings } from '@tutti/core'
import type { Sandbox } from '@tutti/sandbox'
import type { IgnoredPolicy } from '../inside/ignored-policy.ts'
import { insideMounts } from '../inside-paths.ts'
import type { AgentServer } from '../port.ts'
import { connectAgentServer } from './connect-agent-server.ts'

export interface StartOptions {
  /** Made with the mounts of `agentServerMounts`. */
  readonly sandbox: Sandbox
  /** From `buildAgentServer`. */
  readonly serverPath: string
  /** From SIGTERM to SIGKILL inside, in milliseconds. Default: that of the setting `stop.grace`. */
  readonly stopGraceMs?: number
  /** Which ignored files are kept. Default: small ones, and none that may hold secrets. */
  readonly ignored?: IgnoredPolicy
  /** Largest file that is captured, in bytes. Default: what the limits of the whole system say. */
  readonly maxFileBytes?: number
  /** Whether the sandbox has the folder of an egress proxy mounted. Default false. */
  readonly egress?: boolean
  readonly onStderr?: (text: string) => void
}

/** Starts the agent server as the main program of a sandbox and connects to it. Aborting while it starts ends it. */
export async function startAgentServer(options: StartOptions, signal: AbortSignal): Promise<AgentServer> {
  const { sandbox } = options
  const program = sandbox.pathOf(`${insideMounts.runner}/${basename(options.serverPath)}`)
  const exec = await sandbox.exec({ argv: [sandbox.nodePath, '--no-warnings', program] }, signal)
  const stop = () => void exec.kill('SIGKILL')
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await connectAgentServer({
      exec,
      settings: {
        workdir: sandbox.workdir,
        home: sandbox.home,
        sourceObjects: sandbox.pathOf(insideMounts.sourceObjects),
        stopGraceMs: options.stopGraceMs ?? settings['stop.grace'].default,
        isolated: sandbox.isolated,
        ...(options.maxFileBytes !== undefined && { maxFileBytes: options.maxFileBytes }),
        ignored: options.ignored ?? { files: 'small', envFiles: false },
        ...(options.egress ? { egressSocket: sandbox.pathOf(`${insideMounts.egress}/egress.sock`) } : {}),
      },
      ...(options.onStderr ? { onStderr: options.onStderr } : {}),
    })
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
