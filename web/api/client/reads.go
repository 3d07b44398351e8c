// Code generated from the OpenAPI document by web/api/generate. DO NOT EDIT.

package client

import "context"
import "net/url"

// Audit: The audit log, newest first (GET /audit).
func (c *Client) Audit(ctx context.Context, options ...Option) (out Audit, err error) {
	err = c.do(ctx, "GET", "/audit", nil, &out, options)
	return out, err
}

// ListAllConfigs: List what was applied of all projects, newest first (GET /configs).
func (c *Client) ListAllConfigs(ctx context.Context, options ...Option) (out Configs, err error) {
	err = c.do(ctx, "GET", "/configs", nil, &out, options)
	return out, err
}

// Doctor: Check the server and its data for problems (GET /doctor).
func (c *Client) Doctor(ctx context.Context, options ...Option) (out Doctor, err error) {
	err = c.do(ctx, "GET", "/doctor", nil, &out, options)
	return out, err
}

// HostKeys: The server's SSH host keys (GET /host-keys).
func (c *Client) HostKeys(ctx context.Context, options ...Option) (out HostKeys, err error) {
	err = c.do(ctx, "GET", "/host-keys", nil, &out, options)
	return out, err
}

// ListKeys: List the SSH keys (GET /keys).
func (c *Client) ListKeys(ctx context.Context, options ...Option) (out Keys, err error) {
	err = c.do(ctx, "GET", "/keys", nil, &out, options)
	return out, err
}

// ListNodes: List the nodes, with what they reported and their projects (GET /nodes).
func (c *Client) ListNodes(ctx context.Context, options ...Option) (out Nodes, err error) {
	err = c.do(ctx, "GET", "/nodes", nil, &out, options)
	return out, err
}

// GetNode: Show a node (GET /nodes/{node}).
func (c *Client) GetNode(ctx context.Context, node string, options ...Option) (out Nodes, err error) {
	err = c.do(ctx, "GET", "/nodes/"+url.PathEscape(node), nil, &out, options)
	return out, err
}

// ListNotifications: List the sinks and the newest deliveries (GET /notifications).
func (c *Client) ListNotifications(ctx context.Context, options ...Option) (out Notifications, err error) {
	err = c.do(ctx, "GET", "/notifications", nil, &out, options)
	return out, err
}

// ListProjects: List the projects (GET /projects).
func (c *Client) ListProjects(ctx context.Context, options ...Option) (out Projects, err error) {
	err = c.do(ctx, "GET", "/projects", nil, &out, options)
	return out, err
}

// GetProject: Show a project (GET /projects/{name}).
func (c *Client) GetProject(ctx context.Context, name string, options ...Option) (out ProjectDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name), nil, &out, options)
	return out, err
}

// ListApprovals: List deployments that wait for approval, newest first (GET /projects/{name}/approvals).
func (c *Client) ListApprovals(ctx context.Context, name string, options ...Option) (out Document, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/approvals", nil, &out, options)
	return out, err
}

// ListArchives: List the archives, newest first (GET /projects/{name}/archives).
func (c *Client) ListArchives(ctx context.Context, name string, options ...Option) (out Archives, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/archives", nil, &out, options)
	return out, err
}

// GetArchive: Show an archive (GET /projects/{name}/archives/{archive}).
func (c *Client) GetArchive(ctx context.Context, name string, archive string, options ...Option) (out ArchiveDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/archives/"+url.PathEscape(archive), nil, &out, options)
	return out, err
}

// AuditProject: The audit log of a project, newest first (GET /projects/{name}/audit).
func (c *Client) AuditProject(ctx context.Context, name string, options ...Option) (out Audit, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/audit", nil, &out, options)
	return out, err
}

// GetCfg: The configuration of what is live; values of the pillar are hidden (GET /projects/{name}/cfg).
func (c *Client) GetCfg(ctx context.Context, name string, options ...Option) (out Cfg, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/cfg", nil, &out, options)
	return out, err
}

// ListChecks: The checks that run periodically, and their history (GET /projects/{name}/checks).
func (c *Client) ListChecks(ctx context.Context, name string, options ...Option) (out Checks, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/checks", nil, &out, options)
	return out, err
}

// ListConfigs: List what was applied of a project, newest first (GET /projects/{name}/configs).
func (c *Client) ListConfigs(ctx context.Context, name string, options ...Option) (out Configs, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/configs", nil, &out, options)
	return out, err
}

// GetConfig: Show a config, and where it was applied (GET /projects/{name}/configs/{config}).
func (c *Client) GetConfig(ctx context.Context, name string, config string, options ...Option) (out Configs, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/configs/"+url.PathEscape(config), nil, &out, options)
	return out, err
}

// ListDeployments: List the deployments, newest first (GET /projects/{name}/deployments).
func (c *Client) ListDeployments(ctx context.Context, name string, options ...Option) (out Deployments, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/deployments", nil, &out, options)
	return out, err
}

// GetDeployment: Show a deployment (GET /projects/{name}/deployments/{id}).
func (c *Client) GetDeployment(ctx context.Context, name string, id string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/deployments/"+url.PathEscape(id), nil, &out, options)
	return out, err
}

// ListGrants: List the rights on a project (GET /projects/{name}/grants).
func (c *Client) ListGrants(ctx context.Context, name string, options ...Option) (out Grants, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/grants", nil, &out, options)
	return out, err
}

// ListJobs: List the jobs of a project (GET /projects/{name}/jobs).
func (c *Client) ListJobs(ctx context.Context, name string, options ...Option) (out Jobs, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/jobs", nil, &out, options)
	return out, err
}

// GetJob: Show a job (GET /projects/{name}/jobs/{job}).
func (c *Client) GetJob(ctx context.Context, name string, job string, options ...Option) (out JobDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/jobs/"+url.PathEscape(job), nil, &out, options)
	return out, err
}

// ReportProject: Status in full: queue, newest deployments, archives, disk (GET /projects/{name}/report).
func (c *Client) ReportProject(ctx context.Context, name string, options ...Option) (out Reports, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/report", nil, &out, options)
	return out, err
}

// GetStatistics: How often deployments succeed, and how long they and their steps take (GET /projects/{name}/statistics).
func (c *Client) GetStatistics(ctx context.Context, name string, options ...Option) (out StatisticsDocument, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/statistics", nil, &out, options)
	return out, err
}

// ListUnits: List what a project runs (GET /projects/{name}/units).
func (c *Client) ListUnits(ctx context.Context, name string, options ...Option) (out Units, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/units", nil, &out, options)
	return out, err
}

// ListWaits: List what deployments wait for, newest first (GET /projects/{name}/waits).
func (c *Client) ListWaits(ctx context.Context, name string, options ...Option) (out Waits, err error) {
	err = c.do(ctx, "GET", "/projects/"+url.PathEscape(name)+"/waits", nil, &out, options)
	return out, err
}

// Report: Status in full of all projects (GET /report).
func (c *Client) Report(ctx context.Context, options ...Option) (out Reports, err error) {
	err = c.do(ctx, "GET", "/report", nil, &out, options)
	return out, err
}

// ListTokens: List the API tokens (GET /tokens).
func (c *Client) ListTokens(ctx context.Context, options ...Option) (out Tokens, err error) {
	err = c.do(ctx, "GET", "/tokens", nil, &out, options)
	return out, err
}

// WhoAmI: Whose request this is (GET /user).
func (c *Client) WhoAmI(ctx context.Context, options ...Option) (out UserDocument, err error) {
	err = c.do(ctx, "GET", "/user", nil, &out, options)
	return out, err
}

// ListUsers: List the users (GET /users).
func (c *Client) ListUsers(ctx context.Context, options ...Option) (out Users, err error) {
	err = c.do(ctx, "GET", "/users", nil, &out, options)
	return out, err
}

// GetUser: Show a user: keys, tokens and rights (GET /users/{user}).
func (c *Client) GetUser(ctx context.Context, user string, options ...Option) (out UserDocument, err error) {
	err = c.do(ctx, "GET", "/users/"+url.PathEscape(user), nil, &out, options)
	return out, err
}

// Version: The server's version (GET /version).
func (c *Client) Version(ctx context.Context, options ...Option) (out Build, err error) {
	err = c.do(ctx, "GET", "/version", nil, &out, options)
	return out, err
}
