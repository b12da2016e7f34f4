import { TuttiError } from '@tutti/core'
import type { Selectable } from 'kysely'
import type { RepositoriesTable } from '../schema.ts'
import type { RepositoryCatalog, RepositoryRow } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'

/** Repositories of one base name; whoever has more gives a name of their own. */
const maxSameName = 1000

export function createRepositoryCatalog({ executor }: { executor: SqlExecutor }): RepositoryCatalog {
  const { db } = executor
  const ofOwner = (owner: string) => db.selectFrom('repositories').selectAll().where('owner', '=', owner)

  return {
    async add(owner, name, location, now, signal) {
      for (let number = 1; number <= maxSameName; number += 1) {
        const [known] = await executor.read(ofOwner(owner).where('location', '=', location), signal)
        if (known) return toRepository(known)
        const free = number === 1 ? name : `${name}-${number}`
        const insertion = db
          .insertInto('repositories')
          .values({ owner, name: free, location, created_at: now })
          .onConflict((conflict) => conflict.doNothing())
          .returningAll()
        const [inserted] = await executor.write([insertion], signal)
        const [row] = (inserted?.rows ?? []) as Selectable<RepositoriesTable>[]
        if (row) return toRepository(row)
      }
      throw new TuttiError(
        'resource_exhausted',
        `Too many repositories are called ${name}; give another name.`,
      )
    },

    async get(owner, name, signal) {
      const [row] = await executor.read(ofOwner(owner).where('name', '=', name), signal)
      if (row) return toRepository(row)
      throw new TuttiError(
        'not_found',
        `There is no repository ${name}; add it with \`tutti repo add PATH\`.`,
        {
          name,
        },
      )
    },

    async list(owner, signal) {
      return (await executor.read(ofOwner(owner).orderBy('name'), signal)).map(toRepository)
    },

    async listInUse(signal) {
      const locations = (table: 'agents' | 'ensembles') =>
        db
          .selectFrom(table)
          .leftJoin('repositories', (join) =>
            join
              .onRef('repositories.owner', '=', `${table}.owner`)
              .onRef('repositories.name', '=', `${table}.repository`),
          )
          .select(({ fn, ref }) =>
            fn.coalesce('repositories.location', ref(`${table}.repository`)).as('location'),
          )
      const query = locations('agents').union(locations('ensembles'))
      return (await executor.read(query, signal)).map(({ location }) => location)
    },
  }
}

const toRepository = (row: Selectable<RepositoriesTable>): RepositoryRow => ({
  name: row.name,
  owner: row.owner,
  location: row.location,
  createdAt: row.created_at,
})
