import type { BlobStore } from '@tutti/blob-store'
import type { AgentConfig } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { RecoveryEvent } from '@tutti/protocol'
import { isInNoCommit } from '@tutti/workspace'
import { pathFields } from '@tutti/workspace/log'
import type { Booted } from './boot-sandbox.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { moveAtOf } from './end-of-life.ts'
import type { KeepBase } from './keep-base.ts'
import { createOwnedBlobs } from './owned-blobs.ts'
import type { RunLogWriter } from './run-log-writer.ts'
import { createSessionWorkspace } from './session-workspace.ts'
import type { HostSession } from './sessions.ts'
import type { WantedWorkspace } from './wanted-workspace.ts'
import { createWorkspaceTracker } from './workspace-tracker.ts'

export interface HostSessionParts {
  readonly input: Parameters<Activities['provisionSandbox']>[0]
  readonly config: AgentConfig
  readonly mirror: Mirror
  readonly keepBase: KeepBase
  readonly base: string
  /** The checkpoint that the workspace was made from, or the base. */
  readonly commit: string
  readonly log: RunLogWriter
  /** What is put there is young for its owner. */
  readonly blobs: BlobStore
  readonly booted: Booted
  readonly workspace: WantedWorkspace
  /** Absent for the first sandbox. */
  readonly recovery: RecoveryEvent | undefined
  readonly controller: AbortController
}

/** The life of a sandbox that has just come up with its workspace. */
export function createHostSession(deps: ActivityDeps, parts: HostSessionParts): HostSession {
  const { input, config, mirror, keepBase, base, commit, log, blobs, booted, workspace, controller } = parts
  const { bcId, owner, incarnation } = input
  const { sandbox, server, manifestDigest } = booted
  const { wanted, putBack, told } = workspace
  const { blobRefs } = deps.catalog
  const gone = new AbortController()
  void server.lost.then(() => gone.abort())
  const tracker = createWorkspaceTracker({
    blobs,
    packs: createOwnedBlobs(deps.blobs, (ids, adding) => blobRefs.add(owner, ids, adding)),
    crashPoint: deps.crashPoint,
    incarnation,
    write: (...events) => log.write(...events),
    checkPack: (...given) => mirror.checkPack(...given),
    signal: controller.signal,
    gone: gone.signal,
    // What was put back is in a checkpoint already, but for what no commit can have.
    initial: putBack === undefined ? wanted.changes : wanted.changes.filter(isInNoCommit),
    manifestDigest,
    git: wanted.git,
  })
  return {
    bcId,
    owner,
    incarnation,
    config,
    sandbox,
    server,
    mirror,
    log,
    workspace: createSessionWorkspace(deps, {
      bcId,
      incarnation,
      baseCommit: base,
      commit,
      server,
      mirror,
      keepBase,
      log,
      tracker,
    }),
    baseCommit: base,
    controller,
    exported: wanted.exported,
    summary: '',
    putBackTo: told,
    moveAt: moveAtOf(deps, sandbox.expiresAt),
    leaves: undefined,
    turnId: undefined,
    inTurn: false,
    quiet: true,
    turnFrom: 0,
    stopped: false,
    recovery: parts.recovery,
    untold: new Set(wanted.synced.map((path) => pathFields(path).path)),
    killed: false,
  }
}
