import { create } from '@bufbuild/protobuf'
import type { TuttiClient } from '@tutti/client'
import { EnsembleSchema } from '@tutti/proto'
import { expect, test } from 'vitest'
import { lookAtAgents, showPullRequest } from './next-commands.ts'

const command = (words: string) => `tutti ${words}`
const looks = (...attempts: readonly object[]) =>
  lookAtAgents(create(EnsembleSchema, { attempts: [...attempts] }), command)

test('the log of the agent that failed, the changes of one that has some', () => {
  const done = { bcId: 'bc-1', reason: 'completed', filesChanged: 2 }
  expect(
    looks({ bcId: 'bc-0', reason: 'nothing_to_deliver' }, done, { bcId: 'bc-2', reason: 'budget' }),
  ).toEqual(['tutti agent events bc-2', 'tutti agent diff bc-1'])
  expect(looks(done, { ...done, bcId: 'bc-3', check: { exitCode: 1 } })[0]).toBe('tutti agent events bc-3')
  expect(looks({ bcId: 'bc-0', reason: 'setup_failed' })).toEqual(['tutti agent events bc-0'])
  expect(looks()).toEqual([])
})

test('a pull request is named with its repository where the number is not enough', async () => {
  const ensemble = create(EnsembleSchema, { pullRequest: { number: 1n, repository: 'shop' } })
  const clientThat = (getPullRequest: () => Promise<unknown>) =>
    ({ pullRequests: { getPullRequest } }) as unknown as TuttiClient
  const one = clientThat(() => Promise.resolve({}))
  const several = clientThat(() => Promise.reject(new Error('several')))
  expect(await showPullRequest(one, ensemble, command)).toEqual(['tutti pr show 1'])
  expect(await showPullRequest(several, ensemble, command)).toEqual(['tutti pr show 1 --repo shop'])
  expect(await showPullRequest(one, create(EnsembleSchema), command)).toEqual([])
})
