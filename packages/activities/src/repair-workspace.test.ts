import type { AgentServer } from '@tutti/agent-server'
import { afterEach, expect, test } from 'vitest'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

let host: TestHost
afterEach(async () => host?.remove())

type Hydrate = AgentServer['hydrate']

/** The change of `b` is not written. */
const withoutB =
  (hydrate: Hydrate): Hydrate =>
  (request, signal) => {
    const changes = request.changes.filter(
      (change) => change.action === 'deleted' || Buffer.from(change.state.path).toString() !== 'b',
    )
    expect(changes).toHaveLength(request.changes.length - 1)
    return hydrate({ ...request, changes }, signal)
  }
/** All is written, and `b` cannot be read back as what it should be. */
const withWrongB =
  (hydrate: Hydrate): Hydrate =>
  async (request, signal) => ({ ...(await hydrate(request, signal)), wrong: [Buffer.from('b')] })
const ways = [
  ['is not written', withoutB, ' (content of a checkpoint)'],
  ['is found to be wrong', withWrongB, ': b'],
] as const

/** An agent whose sandbox was lost; `times` times the next ones have `b` in this way. */
async function lose(way: (hydrate: Hydrate) => Hydrate, times: number): Promise<() => number> {
  let hydrated = -1
  host = await createTestHost({
    files: { a: 'a', b: 'b' },
    agentServer: (real) => ({
      ...real,
      hydrate(request, signal) {
        hydrated += 1
        const isWrong = hydrated > 0 && hydrated <= times
        return (isWrong ? way(real.hydrate) : real.hydrate)(request, signal)
      },
    }),
  })
  const session = await host.provision(1)
  await runInside(session, 'echo 2 > a; echo 2 > b; git commit -qm mine a; mkdir empty')
  await captureNow(session)
  await host.lose(session)
  return () => hydrated
}
const statesOfSecond = async () =>
  (await host.events('sandbox')).flatMap(({ incarnation, state }) => (incarnation === 2 ? [state] : []))

test.each(ways)(
  'when a path of a recovery %s, it is written once more, in the same sandbox',
  async (_, way) => {
    const hydrated = await lose(way, 1)
    const session = await host.provision(2)
    expect(hydrated()).toBe(2)
    expect(await statesOfSecond()).toEqual(['creating', 'hydrating', 'ready'])
    expect(await host.events('recovery')).toMatchObject([{ incarnation: 2, proven: true, missing: [] }])
    expect(await runInside(session, 'cat a b; ls; git status --porcelain; git log --format=%s')).toBe(
      '2\n2\na\nb\nempty\n M b\nmine\nstart',
    )
  },
)

test.each(ways)(
  'when it %s a second time too, the recovery is refused, and a later one does it',
  async (_, way, what) => {
    const hydrated = await lose(way, 2)
    await expect(host.provision(2)).rejects.toMatchObject({
      type: 'data_loss',
      message: expect.stringContaining(`also when it was written a second time${what}`),
    })
    expect(hydrated()).toBe(2)
    expect(await host.events('recovery')).toEqual([])
    const session = await host.provision(3)
    expect(await runInside(session, 'cat a b')).toBe('2\n2')
  },
)
