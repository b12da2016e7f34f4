import { limits, TuttiError, type AgentConfig } from '@tutti/core'
import type { RecoveredWorkspace } from '@tutti/workspace/log'
import { BootFailure, bootSandbox, type Booted } from './boot-sandbox.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { failWith } from './fail.ts'
import { diskSize, tooSmall, withMore } from './sandbox-limit.ts'
import type { RunLogWriter } from './run-log-writer.ts'

export interface BootUntilReady {
  readonly input: Parameters<Activities['provisionSandbox']>[0]
  readonly config: AgentConfig
  readonly mirror: Parameters<typeof bootSandbox>[1]['mirror']
  readonly location: string
  readonly commit: string
  readonly base: string
  readonly recovered: RecoveredWorkspace
  readonly premise: Promise<void>
  readonly log: RunLogWriter
  readonly phase: (name: string) => void
}

/**
 * Boots a sandbox, at most three times before the deadline; the log is told how each ended. What a sandbox of this size has held may not
 * fit into the next one, where the commits that it comes from lie beside it: after such a boot the disk is twice as large.
 *
 * @throws ApplicationFailure `setup_failed`, `resource_limit` or `boot_timeout`; TuttiError for what another boot would meet again.
 */
export async function bootUntilReady(
  deps: ActivityDeps,
  request: BootUntilReady,
  signal: AbortSignal,
): Promise<Booted> {
  const { input, config, mirror, location, commit, base, recovered, premise, log, phase } = request
  const { changes, git, manifestDigest } = recovered
  const { bcId, incarnation } = input
  let failure = new BootFailure('boot', 'The time to get ready was over before the first boot.')
  let policy = config.sandbox
  let tried = policy
  const isRecovery = recovered.before !== undefined
  /** A first sandbox holds nothing of ours: what has no room in it is too large for what was asked for, and a setup command's own doing. */
  const lackOf = ({ lacks, stage }: BootFailure) => (isRecovery || stage === 'boot' ? lacks : undefined)
  let detail: string | undefined
  for (let attempt = 1; attempt <= limits.maxBoots && deps.clock.now() < input.deadlineMs; attempt += 1) {
    tried = policy
    try {
      return await bootSandbox(
        deps,
        {
          key: `${bcId}/${incarnation}`,
          owner: input.owner,
          policy,
          mirror,
          location,
          commit,
          base,
          // An agent's checkpoints are ours: to its git, what it has not committed is uncommitted.
          head: base,
          branch: input.branch,
          changes,
          ...(git && { git }),
          ...(manifestDigest !== undefined && { manifestDigest }),
          setupCommand: config.setupCommand,
          premise,
          deadline: input.deadlineMs,
          onDenied: (target) => deps.log.info({ bc_id: bcId, target }, 'egress denied'),
          onStep(state) {
            phase(state)
            if (state === 'creating' && attempt === 1) return
            const larger = state === 'creating' && detail !== undefined && { detail }
            void log.write({ type: 'sandbox', incarnation, state, ...larger }).catch(() => undefined)
          },
        },
        signal,
      )
    } catch (thrown) {
      if (!(thrown instanceof BootFailure)) {
        const error = TuttiError.from(thrown)
        if (error.code !== 'cancelled') await tell(log, incarnation, error.message)
        throw error
      }
      failure = thrown
      await tell(log, incarnation, `Boot ${attempt} of ${limits.maxBoots} failed. ${failure.message}`)
      const lacks = lackOf(failure)
      if (!lacks) continue
      if (attempt === limits.maxBoots || !isRecovery) break
      policy = withMore(policy, lacks)
      detail = `with room for ${diskSize(policy, lacks)}: the workspace and its commits need more than sandbox.${lacks}, ${diskSize(config.sandbox, lacks)}`
      deps.log.warn({ bc_id: bcId, incarnation, limit: lacks }, `a sandbox ${detail}`)
    }
  }
  const lacks = lackOf(failure)
  if (lacks) {
    const way = isRecovery
      ? ` \`tutti agent workspace ${bcId} --to DIR\` writes all files into a folder, for a new agent to go on with.`
      : ''
    throw failWith('resource_limit', `${tooSmall(config.sandbox, tried, lacks)}${way}`)
  }
  throw failWith(failure.stage === 'setup' ? 'setup_failed' : 'boot_timeout', failure.message)
}

async function tell(log: RunLogWriter, incarnation: number, detail: string): Promise<void> {
  await log.write({ type: 'sandbox', incarnation, state: 'destroyed', detail: detail.slice(0, 4096) })
  await log.flush()
}
