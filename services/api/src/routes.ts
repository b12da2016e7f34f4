import type { DescService } from '@bufbuild/protobuf'
import type { ConnectRouter } from '@connectrpc/connect'
import {
  AgentService,
  BackgroundComposerService,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
} from '@tutti/proto'

import type { ApiDeps } from './api-deps.ts'
import type { HandlerDeps } from './handler.ts'
import { createAgents } from './handlers/agents.ts'
import { createAnswerQuestion } from './handlers/answer-question.ts'
import { createDeliver } from './handlers/deliver.ts'
import { createDiffAgent } from './handlers/diff-agent.ts'
import { createEnsembles } from './handlers/ensembles.ts'
import { createFileSync } from './handlers/file-sync.ts'
import { createFollowup } from './handlers/followup.ts'
import { createLifeCycle } from './handlers/life-cycle.ts'
import { createPullRequests } from './handlers/pull-requests.ts'
import { createReadWorkspace } from './handlers/read-workspace.ts'
import { createRecover } from './handlers/recover.ts'
import { createRepositories } from './handlers/repositories.ts'
import { createStartAgent } from './handlers/start-agent.ts'
import { createStartEnsemble } from './handlers/start-ensemble.ts'
import { createStreamConversation } from './handlers/stream-conversation.ts'
import { createStreamEnsembleStatus } from './handlers/stream-ensemble-status.ts'
import { createStreamEvents } from './handlers/stream-events.ts'
import { createSystem } from './handlers/system.ts'
import { createJsonBlobs } from './json-blobs.ts'
import { createPendingTurns } from './pending-turns.ts'
import { createRecordViews } from './record-views.ts'
import { createSavedStates } from './saved-states.ts'
import { createSharedReads } from './shared-reads.ts'

/** Everything that the API answers. */
export const apiServices: readonly DescService[] = [
  AgentService,
  BackgroundComposerService,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
]

/** Which handler answers which method. */
export function createRoutes(apiDeps: ApiDeps): (router: ConnectRouter) => void {
  const deps: HandlerDeps = {
    ...apiDeps,
    jsonBlobs: createJsonBlobs({ blobs: apiDeps.blobs, blobRefs: apiDeps.catalog.blobRefs }),
    pendingTurns: createPendingTurns(apiDeps),
    recordViews: createRecordViews(),
    reads: createSharedReads(apiDeps.eventLog),
    savedStates: createSavedStates({ blobs: apiDeps.blobs, blobRefs: apiDeps.catalog.blobRefs }),
  }
  const agents = createAgents(deps)
  const start = createStartAgent(deps)
  const deliver = createDeliver(deps)
  const lifeCycle = createLifeCycle(deps)
  const events = createStreamEvents(deps)

  // Handlers are named like the methods they answer; what a service has no method for is left aside.
  return (router) => {
    router.service(BackgroundComposerService, {
      ...agents,
      ...start,
      ...deliver,
      ...lifeCycle,
      startParallelAgentWorkflow: createStartEnsemble(deps),
      streamParallelAgentWorkflowStatus: createStreamEnsembleStatus(deps),
      addAsyncFollowupBackgroundComposer: createFollowup(deps),
      streamConversation: createStreamConversation(deps),
    })
    router.service(AgentService, {
      ...agents,
      ...start,
      ...deliver,
      ...lifeCycle,
      ...events,
      answerQuestion: createAnswerQuestion(deps),
      recoverAgent: createRecover(deps),
      diffAgent: createDiffAgent(deps),
      fileSync: createFileSync(deps),
      readWorkspace: createReadWorkspace(deps),
    })
    router.service(EnsembleService, { ...createEnsembles(deps), ...events })
    router.service(PullRequestService, createPullRequests(deps))
    router.service(RepositoryService, createRepositories(deps))
    router.service(SystemService, createSystem(deps))
  }
}
