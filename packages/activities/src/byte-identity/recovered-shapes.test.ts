import { afterAll, beforeAll, expect, test } from 'vitest'
import { captureNow, createTestHost, type TestHost } from '../test-host.ts'
import { compareReports } from './compare-reports.ts'
import { makeBase } from './make-base.ts'
import { runInside } from './run-inside.ts'

let host: TestHost
let incarnation = 1
beforeAll(async () => {
  host = await createTestHost({ files: { x: 'x' }, prepare: makeBase })
})
afterAll(() => host.remove())

/** What seeds of `byte-identity.test.ts` have found, each as the least that shows it. */
test.for([
  [
    'a link that git would not check out',
    'ln -sfn nowhere .gitmodules; mkdir -p d; ln -sfn nowhere d/.GITMODULES; ln -sfn x d/gitmod~1',
  ],
  ['folders on the way to what cannot be looked at', 'mkdir -p way/to/shut; chmod 000 way/to/shut'],
] as const)('%s', { timeout: 60_000 }, async ([, line]) => {
  const session = await host.provision(incarnation)
  const edit = { name: line, edit: { kind: 'shell', line, folder: '.' } } as const
  const before = await runInside(session, [edit])
  await captureNow(session)
  await host.checkpoint(session)
  await host.lose(session)
  incarnation += 1
  const next = await host.provision(incarnation)
  const [recovery] = (await host.events('recovery')).slice(-1)
  expect(
    compareReports(before, await runInside(next, []), { missing: recovery!.missing, isCut: false }),
  ).toEqual([])
})
