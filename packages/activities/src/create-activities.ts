import { createAdmit } from './admit.ts'
import { createCheckAttempt } from './check-attempt.ts'
import { createCheckpointTurn } from './checkpoint-turn.ts'
import { createCombine } from './combine.ts'
import { createConfigBlobs } from './config-blobs.ts'
import type { Activities } from './contract.ts'
import { createDeliver } from './deliver.ts'
import { createDeliverAgent } from './deliver-agent.ts'
import type { ActivityDeps } from './deps.ts'
import { createGather } from './gather.ts'
import { keepAlive } from './heartbeat.ts'
import { createProvisionSandbox } from './provision-sandbox.ts'
import { createRecordAttempt } from './record-attempt.ts'
import { createRecordPhase } from './record-phase.ts'
import { createRecordState } from './record-state.ts'
import { createReleaseLease, createReleaseSandbox } from './release-sandbox.ts'
import { createRunTurn } from './run-turn.ts'
import type { Sessions } from './sessions.ts'
import { createVerify } from './verify.ts'

/** All activities, under the names by which workflows call them. */
export function createActivities(deps: ActivityDeps, sessions: Sessions): Activities {
  const configs = createConfigBlobs(deps.blobs)
  // Those without it beat by themselves, with the phase they are in.
  return {
    recordState: keepAlive(createRecordState(deps, configs)),
    admit: createAdmit(deps),
    releaseLease: keepAlive(createReleaseLease(deps)),
    provisionSandbox: createProvisionSandbox(deps, configs, sessions),
    runTurn: createRunTurn(deps, configs, sessions),
    checkpointTurn: createCheckpointTurn(deps, sessions),
    checkAttempt: createCheckAttempt(deps, sessions),
    releaseSandbox: keepAlive(createReleaseSandbox(deps, sessions)),
    recordAttempt: keepAlive(createRecordAttempt(deps, sessions)),
    deliverAgent: keepAlive(createDeliverAgent(deps, configs)),
    recordPhase: keepAlive(createRecordPhase(deps, configs)),
    gather: keepAlive(createGather(deps, configs)),
    combine: keepAlive(createCombine(deps, configs)),
    verify: createVerify(deps, configs),
    deliver: keepAlive(createDeliver(deps, configs)),
  }
}
