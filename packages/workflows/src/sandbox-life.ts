import type { Activities, AgentScope } from '@tutti/activities'
import { CancellationScope, patched, proxyActivities } from '@temporalio/workflow'
import type { CloudAgentInput, Recovery } from './contract.ts'
import type { SandboxStage } from './operator-text.ts'
import { profilesOf } from './profiles.ts'

/** The sandbox of an agent, as its workflow sees it: had or not, and on which host. */
export interface SandboxLife {
  readonly has: () => boolean
  /** For the operator: where the sandbox stands. */
  readonly stage: () => SandboxStage
  readonly incarnation: () => number
  /** An admitted, provisioned, hydrated sandbox; does nothing when there is one. */
  ensure(): Promise<void>
  /** Ends the sandbox, whatever is left of it, and gives its slot back; the next {@link ensure} makes a new incarnation. */
  release(): Promise<void>
  /** Activities that must run on the sandbox's host. */
  onHost(): HostActivities
  readonly scope: () => AgentScope
}

export type HostActivities = Pick<Activities, 'runTurn' | 'checkpointTurn' | 'checkAttempt'>

export interface SandboxLifeDeps {
  /** How many the agent has begun; only shown, in traces and log lines. */
  readonly turns: () => number
  /** What the workflow has to say so far is in the log: the agent’s session begins there before its sandbox does. */
  readonly recorded: () => Promise<void>
  /** The stage has changed; for showing it. */
  readonly onStage: () => void
  /** The recovery that was asked for and comes next. A sandbox that is made is its answer. */
  readonly asked: () => Recovery | undefined
  readonly recovered: (recovery: Recovery) => void
}

export function createSandboxLife(
  input: CloudAgentInput,
  { turns, recorded, onStage, asked, recovered }: SandboxLifeDeps,
): SandboxLife {
  const { bcId, owner, configBlobId, timings } = input
  const memberOf = input.ensembleId ?? input.memberOf
  let incarnation = input.incarnation
  let hostQueue: string | undefined
  let stage: SandboxStage = 'none'

  const scope = (): AgentScope => ({
    bcId,
    owner,
    configBlobId,
    incarnation,
    turns: turns(),
    ...(memberOf && { memberOf }),
  })
  const { heartbeatMs } = timings
  const profiles = profilesOf(heartbeatMs)

  const on = (taskQueue: string, text: string) =>
    proxyActivities<Activities>({ ...profiles.sandbox, taskQueue, summary: text })

  const enter = (next: SandboxStage) => {
    stage = next
    onStage()
  }

  return {
    has: () => stage === 'ready',
    stage: () => stage,
    incarnation: () => incarnation,
    scope,
    async ensure() {
      if (stage === 'ready') return
      incarnation += 1
      enter('waiting')
      const { admit } = proxyActivities<Activities>({
        ...profiles.wait,
        summary: 'wait for a slot',
      })
      try {
        const admitted = await admit({
          ...scope(),
          heartbeatMs,
          ...(input.ensembleId && { ensembleId: input.ensembleId }),
        })
        hostQueue = admitted.hostQueue
      } catch (thrown) {
        enter('none')
        throw thrown
      }
      enter('making')
      if (patched('recorded-before-sandbox')) await recorded()
      const recovery = asked()
      await on(hostQueue, recovery ? 'make a sandbox, as was asked' : 'make a sandbox').provisionSandbox({
        ...scope(),
        branch: `tutti/${bcId}`,
        deadlineMs: Date.now() + timings.readyTimeoutMs,
        heartbeatMs,
        ...(recovery && { recovery }),
      })
      enter('ready')
      if (recovery) recovered(recovery)
    },
    async release() {
      const queue = hostQueue
      if (!queue) return
      hostQueue = undefined
      enter('none')
      await CancellationScope.nonCancellable(async () => {
        try {
          const host = proxyActivities<Activities>({
            ...profiles.release,
            taskQueue: queue,
            summary: 'release the sandbox',
          })
          await host.releaseSandbox(scope())
        } catch {
          // Nobody on that host: its sandboxes died with it, and only the lease is left.
          await proxyActivities<Activities>({
            ...profiles.record,
            summary: 'give the slot back',
          }).releaseLease(scope())
        }
      })
    },
    onHost() {
      const queue = hostQueue!
      return {
        runTurn: (turn) => on(queue, `turn ${turn.number}: run the agent`).runTurn(turn),
        checkpointTurn: (request) => on(queue, 'checkpoint').checkpointTurn(request),
        checkAttempt: (request) => on(queue, 'check').checkAttempt(request),
      }
    },
  }
}
