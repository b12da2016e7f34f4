import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crashPoints } from '@tutti/core'
import { expect, test } from 'vitest'
import { crashPointsOf } from './crash-points-of.ts'

test('each crash point that there is has a test, and one only', () => {
  expect(Object.values(crashPointsOf).flat(2).toSorted()).toEqual(Object.keys(crashPoints).toSorted())
})

test('each list of crash points is run by one file, and each file has its own list only', () => {
  const uses = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith('.test.ts') && name !== 'crash-points.test.ts')
    .flatMap((name) =>
      readFileSync(join(import.meta.dirname, name), 'utf8')
        .split('\n')
        .flatMap((line) => [...line.matchAll(/crashPointsOf\.(\w+)/g)].map(([, list]) => `${name} ${list}`)),
    )
  const expected = Object.keys(crashPointsOf).map((list) => `crash-points-of-${list}.test.ts ${list}`)
  expect(uses.toSorted()).toEqual(expected.toSorted())
})
