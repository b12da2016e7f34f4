import { passingName } from '@tutti/processes'

/** Folders of sandboxes are named after who made them, so that those of a dead process are told apart: see `isAbandoned`. */
export const diskFolderKind = 'disk'

export const diskFolderName = (id: string): string => `${passingName(diskFolderKind)}-${id}`

/** The sandbox that a folder belongs to; undefined for what is no such folder. */
export const idOfFolder = (name: string): string | undefined =>
  /^disk-\d+-[\w@]+-([0-9a-f]{24})$/.exec(name)?.[1]
