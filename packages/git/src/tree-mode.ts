/** What git's trees name, but for folders: a file, one that can be executed, a link, a commit of another repository. */
export const treeModes = ['100644', '100755', '120000', '160000'] as const
export type TreeMode = (typeof treeModes)[number]

/** What has content of its own. */
export type ContentMode = Exclude<TreeMode, '160000'>

export const isTreeMode = (text: string): text is TreeMode => (treeModes as readonly string[]).includes(text)
export const isContentMode = (text: string): text is ContentMode => isTreeMode(text) && text !== '160000'
