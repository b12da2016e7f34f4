import type { CrashPointName, EnsembleId } from '@tutti/core'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { connect } from '../cases/connect.ts'
import { nothingLeft } from '../cases/nothing-left.ts'
import { dieAt } from './die-at.ts'
import { driveEnsemble, requestOf } from './ensemble-driver.ts'
import { expectWholeLogs, of } from './whole-logs.ts'

const temporalPath = inject('temporalServer')

/** Steps that happen all the time: the first is in the request, these are in the middle of the agents' work. */
const passings: Partial<Record<CrashPointName, number>> = {
  'log.append': 6,
  'catalog.write': 9,
  'blob.put': 5,
}

/** Makes a test of each course: an ensemble whose server dies before and after each of these steps ends as if nothing had been. */
export function dieInCourses(courses: readonly (readonly CrashPointName[])[]): void {
  describe.skipIf(!temporalPath)('a server that dies at a durable step, right before and right after', () => {
    let stack: TuttiStack
    let repository: TestRepository

    beforeEach(async () => {
      stack = await createTuttiStack({
        temporalPath: temporalPath!,
        env: { TUTTI_MAX_SANDBOXES: '2', TUTTI_HEARTBEAT_TIMEOUT: '1s' },
      })
      repository = createTestRepository({ 'README.md': 'hello\n' })
    })
    afterEach(async () => {
      await stack.remove()
      repository.remove()
    })

    test.for(courses.map((names) => [names.join(', '), names] as const))(
      '%s',
      { timeout: 180_000 },
      async ([, names]) => {
        let ensembleId: EnsembleId | undefined
        // The client repeats its request under the same key until it has an answer.
        const start = async () => {
          if (ensembleId) return
          const client = connect(stack)
          const request = await requestOf(client, {
            repository: repository.path,
            agents: ["command:sh -c 'echo 1 > one'", "command:sh -c 'echo 2 > two'"],
            spec: { checkCommand: 'test -s README.md' },
            idempotencyKey: `once-${names[0]}`,
          })
          ensembleId = (await client.composers.startParallelAgentWorkflow(request)).ensembleId as EnsembleId
        }
        for (const name of names) {
          await dieAt(stack, `${name}:before:${passings[name] ?? 1}`, start)
          await dieAt(stack, `${name}:after:1`, start)
        }
        await stack.start()
        await start()

        const ensemble = driveEnsemble(stack, ensembleId!)
        const { reason, synthesis, pullRequest } = await ensemble.end()
        expect(reason).toBe('completed')
        expect(repository.tree(synthesis!.commit)).toEqual({
          'README.md': '100644 hello\n',
          one: '100644 1\n',
          two: '100644 2\n',
        })
        expect(pullRequest!.number).toBe(1n)
        expect(repository.git('branch', '--list', 'tutti/*').trim()).toBe(pullRequest!.branch)
        const events = await ensemble.events()
        expect(of(events, 'phase').map(({ phase }) => phase)).toEqual([
          'STARTING',
          'CHILDREN_RUNNING',
          'GATHERING',
          'SYNTHESIZING',
          'COMPLETED',
        ])
        expect(of(events, 'delivery')).toHaveLength(1)
        await expectWholeLogs(ensemble)
        await nothingLeft(stack)
        const { ensembles } = await connect(stack).ensembles.listEnsembles({ pageSize: 1000 })
        expect(ensembles).toHaveLength(1)
      },
    )
  })
}
