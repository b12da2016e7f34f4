import {
  condition,
  defineQuery,
  defineSignal,
  defineUpdate,
  proxyActivities,
  setHandler,
  startChild,
} from '@temporalio/workflow'
import type { BareActivities } from './bare-activities.ts'

const activities = proxyActivities<BareActivities>({ startToCloseTimeout: '5 minutes' })

export interface BareEnsemble {
  readonly id: string
  readonly children: number
  /** No-op activities of each child and of the parent, besides the git work. */
  readonly childActivities: number
  readonly parentActivities: number
  /** A repository to clone, to commit into and to push to; absent for none. */
  readonly repository?: string
  readonly workDir?: string
}

/** What an ensemble costs at least: children, as many activities, and the same git work, without anything of Tutti. */
export async function bareParent(input: BareEnsemble): Promise<void> {
  const { id, children, repository, workDir } = input
  const handles = []
  for (let index = 0; index < children; index += 1) {
    handles.push(await startChild(bareChild, { workflowId: `${id}/${index}`, args: [{ ...input, index }] }))
  }
  await Promise.all(handles.map((handle) => handle.result()))
  for (let count = 0; count < input.parentActivities; count += 1) await activities.nothing()
  if (repository && workDir) await activities.mergeAndPush({ repository, workDir, children })
}

/** Starts every child of a fan-out, as many at a time as Tutti does. */
export async function bareFanOut(input: BareEnsemble): Promise<void> {
  const batch = 10
  const handles = []
  for (let from = 0; from < input.children; from += batch) {
    const size = Math.min(batch, input.children - from)
    handles.push(
      ...(await Promise.all(
        Array.from({ length: size }, (_, index) =>
          startChild(bareChild, {
            workflowId: `${input.id}/${from + index}`,
            args: [{ ...input, index: from + index }],
          }),
        ),
      )),
    )
  }
  await Promise.all(handles.map((handle) => handle.result()))
}

export async function bareChild(input: BareEnsemble & { readonly index: number }): Promise<void> {
  for (let count = 0; count < input.childActivities; count += 1) await activities.nothing()
  const { repository, workDir, index } = input
  if (repository && workDir) await activities.cloneAndCommit({ repository, workDir, index })
}

export const bareUpdate = defineUpdate<number, [string]>('bare_update')
export const bareStop = defineSignal('bare_stop')
export const bareCount = defineQuery<number>('bare_count')

/** A workflow that does nothing but take updates. */
export async function bareReceiver(): Promise<void> {
  let count = 0
  let stopped = false
  setHandler(bareUpdate, () => (count += 1))
  setHandler(bareCount, () => count)
  setHandler(bareStop, () => {
    stopped = true
  })
  await condition(() => stopped)
}
