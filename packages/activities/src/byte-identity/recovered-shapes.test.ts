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

/** What seeds of `byte-identity.test.ts` have found, each as the least that shows it; what is in lines is captured one by one. */
test.for([
  [
    'a link that git would not check out',
    'ln -sfn nowhere .gitmodules; mkdir -p d; ln -sfn nowhere d/.GITMODULES; ln -sfn x d/gitmod~1',
  ],
  ['folders on the way to what cannot be looked at', 'mkdir -p way/to/shut; chmod 000 way/to/shut'],
  [
    'a flag of the index of what was there before it',
    'mkdir d; echo d > d/d; git add d; git commit -qm d; git sparse-checkout set d; git update-index --skip-worktree d/d',
    'rm -r d',
  ],
] as const)('%s', { timeout: 60_000 }, async ([, ...lines]) => {
  const session = await host.provision(incarnation)
  let before = await runInside(session, [])
  for (const line of lines) {
    before = await runInside(session, [{ name: line, edit: { kind: 'shell', line, folder: '.' } }])
    await captureNow(session)
  }
  await host.checkpoint(session)
  await host.lose(session)
  incarnation += 1
  const next = await host.provision(incarnation)
  const [recovery] = (await host.events('recovery')).slice(-1)
  expect(
    compareReports(before, await runInside(next, []), { missing: recovery!.missing, isCut: false }),
  ).toEqual([])
})
